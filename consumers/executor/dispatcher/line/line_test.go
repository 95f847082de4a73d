package line

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// queue is what Line and Plain have in common.
type queue interface {
	SetDecay(perSecond float64)
	SetAbreast(n int)
	Insert(now int64, it Item) Place
	Place(now int64, it Item) Place
	Pop(now int64) (Item, bool)
	Peek(now int64) (Item, bool)
	Remove(id uint64) (Item, bool)
	Len() int
	Sums() (static, dynamic, service float64, nStatic, nDynamic int)
	Increase(now int64, it Item, w Wait) (after, before float64)
	Potential(now int64, w Wait) float64
	Spread(now int64, it Item) float64
	Each(fn func(Item) bool)
}

var (
	_ queue = (*Line)(nil)
	_ queue = (*Plain)(nil)
)

var disciplines = []Discipline{FIFO, Deadline, Cheapest, Lateness, Cost}

// near fails the test if the two differ by more than 1e-9 of the magnitude.
func near(t rapid.TB, what string, got, want, magnitude float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-9*(1+math.Abs(magnitude)) {
		t.Fatalf("%s is %v, plainly %v", what, got, want)
	}
}

// pair is a line and its plain form, under the same calls.
type pair struct {
	t      *rapid.T
	d      Discipline
	line   *Line
	plain  *Plain
	now    int64
	next   uint64
	in     map[uint64]Item // that wait
	served map[uint64]bool
	wait   Wait
	scale  int64 // ns, of deadlines and service times
}

func newPair(t *rapid.T, d Discipline) *pair {
	p := &pair{
		t: t, d: d, line: New(d), plain: NewPlain(d),
		in: map[uint64]Item{}, served: map[uint64]bool{},
		// Real clocks count from 1970, simulations from 0.
		now:   rapid.SampledFrom([]int64{0, 1_790_000_000_000_000_000}).Draw(t, "now"),
		scale: rapid.SampledFrom([]int64{1_000, 1_000_000, 1_000_000_000}).Draw(t, "scale"),
	}
	decay := rapid.SampledFrom([]float64{0, 0.1, 3, 1000}).Draw(t, "decay")
	abreast := rapid.SampledFrom([]int{0, 1, 3, 16}).Draw(t, "abreast")
	for _, q := range []queue{p.line, p.plain} {
		q.SetDecay(decay)
		q.SetAbreast(abreast)
	}
	p.weights()
	return p
}

// weights draws the perceptron's: with a bias of either sign, so that waits have
// their kink anywhere, and sometimes with a byte that shortens the wait.
func (p *pair) weights() {
	unit := float64(p.scale) / perSecond / 1000
	p.wait = Wait{
		Bias:       unit * rapid.SampledFrom([]float64{0, 0, 500, -2000, -50_000}).Draw(p.t, "bias"),
		PerStatic:  unit * rapid.SampledFrom([]float64{0, 1, 2.5, 7, -0.5}).Draw(p.t, "static"),
		PerDynamic: unit * rapid.SampledFrom([]float64{0, 1, 4, 11.3, -2}).Draw(p.t, "dynamic"),
	}
}

// item draws a request: of few or many different deadlines and penalties.
func (p *pair) item() Item {
	p.next++
	it := Item{
		ID: p.next, Arrived: p.now,
		Deadline: p.now + p.scale/10*rapid.Int64Range(-20, 200).Draw(p.t, "deadline"),
		Penalty:  rapid.SampledFrom([]float64{0, 1, 1, 2.5, 0.1, 40}).Draw(p.t, "penalty"),
		Service:  float64(p.scale) / perSecond * float64(rapid.IntRange(0, 30).Draw(p.t, "service")) / 10,
	}
	size := float64(rapid.IntRange(0, 3000).Draw(p.t, "size"))
	if rapid.Bool().Draw(p.t, "dynamic") {
		it.Dynamic = size
	} else {
		it.Static = size + 0.3 // not a whole number
	}
	return it
}

// fill puts many in by one draw.
func (p *pair) fill(n int) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(p.t, "seed"), 0))
	penalties := []float64{0, 1, 1, 2.5, 0.1, 40}
	for range n {
		p.next++
		it := Item{
			ID: p.next, Arrived: p.now,
			Deadline: p.now + p.scale/10*(r.Int64N(220)-20),
			Penalty:  penalties[r.IntN(len(penalties))],
			Service:  float64(p.scale) / perSecond * r.ExpFloat64(),
		}
		if size := 1000 * r.ExpFloat64(); r.IntN(2) == 0 {
			it.Dynamic = size
		} else {
			it.Static = size
		}
		p.insert(it)
		if n > 100 && r.IntN(4) == 0 {
			p.pop()
		}
	}
}

func (p *pair) insert(it Item) {
	got, want := p.line.Insert(p.now, it), p.plain.Insert(p.now, it)
	p.samePlace(got, want)
	p.in[it.ID] = it
}

func (p *pair) samePlace(got, want Place) {
	if got.Index != want.Index {
		p.t.Fatalf("place is %d, plainly %d", got.Index, want.Index)
	}
	near(p.t, "static bytes ahead", got.Static, want.Static, want.Static)
	near(p.t, "dynamic bytes ahead", got.Dynamic, want.Dynamic, want.Dynamic)
}

// taken holds what both took out to each other.
func (p *pair) taken(got, want Item, ok, wantOK bool) {
	if got != want || ok != wantOK {
		p.t.Fatalf("took %v %v, plainly %v %v", got, ok, want, wantOK)
	}
	if !ok {
		return
	}
	if p.in[got.ID] != got || p.served[got.ID] {
		p.t.Fatalf("took %v, which does not wait or was taken before", got)
	}
	delete(p.in, got.ID)
	p.served[got.ID] = true
}

func (p *pair) pop() {
	first, some := p.line.Peek(p.now)
	p.order(first, some)
	got, ok := p.line.Pop(p.now)
	if got != first || ok != some {
		p.t.Fatalf("took %v, not %v as was told before", got, first)
	}
	want, wantOK := p.plain.Pop(p.now)
	p.taken(got, want, ok, wantOK)
}

// order holds whom the line serves next to the discipline, by what is in and by
// nothing else that the line says.
func (p *pair) order(it Item, ok bool) {
	if ok != (len(p.in) > 0) {
		p.t.Fatalf("%d wait, and it says %v", len(p.in), ok)
	}
	for _, other := range p.in {
		switch p.d {
		case FIFO:
			if other.ID < it.ID {
				p.t.Fatalf("%d is served before %d", it.ID, other.ID)
			}
		case Deadline:
			if other.Deadline < it.Deadline || other.Deadline == it.Deadline && other.ID < it.ID {
				p.t.Fatalf("%v is served before %v", it, other)
			}
		case Lateness:
			mine, others := it.penalty(p.now, 0), other.penalty(p.now, 0)
			if others > mine || others == mine && other.Deadline < it.Deadline {
				p.t.Fatalf("%v is served before %v at %d", it, other, p.now)
			}
		case Cost:
			if mine, others := p.cbs(it), p.cbs(other); others > mine*(1+1e-9) {
				p.t.Fatalf("%v is served before %v at %d: %v < %v", it, other, p.now, mine, others)
			}
		case Cheapest: // TestCheapestBehind
		}
	}
}

// cbs is the score of PAPERS §2.7 to the letter.
func (p *pair) cbs(it Item) float64 {
	a := p.plain.decay
	return it.Penalty / (a * max(it.Service, leastNs)) * math.Exp(-a*max(0, seconds(it.Deadline-p.now)))
}

// questions holds every answer to the plain one.
func (p *pair) questions() {
	it := p.item()
	p.samePlace(p.line.Place(p.now, it), p.plain.Place(p.now, it))
	after, before := p.line.Increase(p.now, it, p.wait)
	wantAfter, wantBefore := p.plain.Increase(p.now, it, p.wait)
	near(p.t, "penalty before", before, wantBefore, wantBefore)
	near(p.t, "penalty after", after, wantAfter, wantAfter)
	near(p.t, "increase", after-before, wantAfter-wantBefore, max(wantAfter, wantBefore))
	potential := p.line.Potential(p.now, p.wait)
	want := p.plain.Potential(p.now, p.wait)
	near(p.t, "potential", potential, want, want)
	spread, want := p.line.Spread(p.now, it), p.plain.Spread(p.now, it)
	near(p.t, "spread", spread, want, want)
	if after < 0 || before < 0 || potential < 0 || spread < 0 {
		p.t.Fatalf("negative: %v, %v, %v, %v", after, before, potential, spread)
	}
	if p.wait.PerStatic >= 0 && p.wait.PerDynamic >= 0 && after-before < -1e-9*(1+before) {
		p.t.Fatalf("a request more takes penalties away: %v before, %v after", before, after)
	}
}

// whole holds all items, sums and the line's own account to the plain form.
func (p *pair) whole() {
	if p.line.Len() != p.plain.Len() || p.line.Len() != len(p.in) {
		p.t.Fatalf("%d wait, plainly %d, of %d", p.line.Len(), p.plain.Len(), len(p.in))
	}
	k := 0
	p.line.Each(func(it Item) bool {
		if want := p.plain.items[k]; it != want || p.in[it.ID] != it {
			p.t.Fatalf("at %d is %v, plainly %v", k, it, want)
		}
		k++
		return true
	})
	static, dynamic, service, nStatic, nDynamic := p.line.Sums()
	wantStatic, wantDynamic, wantService, wantNStatic, wantNDynamic := p.plain.Sums()
	near(p.t, "static bytes", static, wantStatic, wantStatic)
	near(p.t, "dynamic bytes", dynamic, wantDynamic, wantDynamic)
	near(p.t, "service", service, wantService, wantService)
	if nStatic != wantNStatic || nDynamic != wantNDynamic {
		p.t.Fatalf("%d and %d, plainly %d and %d", nStatic, nDynamic, wantNStatic, wantNDynamic)
	}
	for i := range p.line.blocks {
		b := &p.line.blocks[i]
		if b.len() == 0 || int(p.line.slots[b.slot]) != i {
			p.t.Fatalf("block %d has %d items and slot %d", i, b.len(), b.slot)
		}
	}
}

func (p *pair) step() {
	switch rapid.IntRange(0, 9).Draw(p.t, "do") {
	case 0, 1, 2:
		p.insert(p.item())
	case 3:
		p.pop()
	case 4:
		id := rapid.Uint64Range(0, p.next+1).Draw(p.t, "id")
		got, ok := p.line.Remove(id)
		want, wantOK := p.plain.Remove(id)
		p.taken(got, want, ok, wantOK)
	case 5:
		p.now += p.scale / 10 * rapid.Int64Range(-1, 30).Draw(p.t, "passes")
	case 6:
		p.weights()
	case 7:
		// The second time in a row finds the line as the first one left it.
		for range rapid.IntRange(1, 2*patience).Draw(p.t, "asked") {
			p.questions()
		}
	case 8:
		p.questions()
	case 9:
		p.whole()
	}
}

// TestLikePlain: over any course of changes and questions the fast form and the
// plain one say the same, serve the same, and each request once.
func TestLikePlain(t *testing.T) {
	t.Parallel()
	for _, d := range disciplines {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := newPair(t, d)
				// Short lines, and such as have several blocks.
				p.fill(rapid.SampledFrom([]int{0, 3, 100, 400}).Draw(t, "at first"))
				for range rapid.IntRange(1, 40).Draw(t, "steps") {
					p.step()
				}
				p.whole()
				for len(p.in) > 0 {
					p.pop()
				}
				p.pop()
				p.whole()
			})
		})
	}
}
