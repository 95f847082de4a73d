package demo

import (
	"math/rand/v2"
	"sync/atomic"
)

// act is one thing that somebody does.
type act struct {
	who, whose int
	write      bool
	note       string // its text
}

// acts draws what people do, one after another: everybody acts once before anybody
// acts again, with their own notebook every other time. It belongs to one
// goroutine.
type acts struct {
	world *World
	rng   *rand.Rand
	turn  []int // who is next, in this round
	round int
}

// writes is how many of a hundred acts write.
const writes = 30

func newActs(w *World, rng *rand.Rand) *acts { return &acts{world: w, rng: rng} }

func (a *acts) next() act {
	if len(a.turn) == 0 {
		a.turn = a.rng.Perm(len(a.world.People))
		a.round++
	}
	who := a.turn[0]
	a.turn = a.turn[1:]
	x := act{who: who, whose: who, write: a.rng.IntN(100) < writes}
	if f := a.world.People[who].Friends; (a.round+who)%2 == 0 && len(f) > 0 {
		x.whose = f[a.rng.IntN(len(f))]
	}
	if x.write {
		x.note = text[:20+a.rng.IntN(len(text)-20)]
	}
	return x
}

const text = "The water of a mill comes down the penstock, and somebody has to decide how much of it goes to which wheel. " +
	"When the rain falls on the other side of the hill, the gates have to be set anew, and nobody at the wheels should notice. " +
	"So one watches the brook, one sets the gates, and one writes down what was done and why."

// whereabouts is where the crowd is.
type whereabouts struct{ at atomic.Int64 }

func (w *whereabouts) crowd() Site    { return Site(w.at.Load()) }
func (w *whereabouts) moveTo(to Site) { w.at.Store(int64(to)) }
