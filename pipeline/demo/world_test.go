package demo

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func world(people int) *World { return NewWorld(people, rand.New(rand.NewPCG(3, 3))) }

func TestWorldIsDrawnFromItsSeed(t *testing.T) {
	w := world(300)
	if !reflect.DeepEqual(w, world(300)) {
		t.Error("another world from the same seed")
	}
	if w.Crowd != 210 {
		t.Errorf("a crowd of %d", w.Crowd)
	}
	seen := map[string]bool{}
	crowdWays := map[Way]int{}
	ties, across := 0, 0
	for i := range w.People {
		p := &w.People[i]
		if seen[p.Name] {
			t.Errorf("%s twice", p.Name)
		}
		seen[p.Name] = true
		if p.Crowd {
			crowdWays[p.Way]++
			if p.Home != 0 {
				t.Errorf("%s of the crowd begins at %d", p.Name, p.Home)
			}
		}
		if len(p.Friends) != friends {
			t.Errorf("%s has %d friends", p.Name, len(p.Friends))
		}
		for _, f := range p.Friends {
			ties++
			if f == i {
				t.Errorf("%s is a friend of theirs", p.Name)
			}
			if w.People[f].Crowd != p.Crowd {
				across++
			}
		}
	}
	for _, way := range []Way{Nearest, Looked, Sent, Stale} {
		if crowdWays[way] == 0 {
			t.Errorf("nobody of the crowd goes the way %q", way)
		}
	}
	if across == 0 || across*5 > ties {
		t.Errorf("%d of %d friendships are between the crowd and others", across, ties)
	}
}

func TestPeopleAreWhereTheCrowdIs(t *testing.T) {
	w := world(50)
	for i := range w.People {
		p := &w.People[i]
		want := p.Home
		if p.Crowd {
			want = 2
		}
		if at := w.Where(p, 2); at != want {
			t.Errorf("%s is at %d, expected %d", p.Name, at, want)
		}
	}
	p := &Person{Host: 7}
	if a := w.Address(p, 1); a != "198.51.100.7" {
		t.Errorf("address %s", a)
	}
}

// TestEverybodyActsOnceARound, every other time on their own notebook.
func TestEverybodyActsOnceARound(t *testing.T) {
	const people, rounds = 40, 10
	w := world(people)
	a := newActs(w, rand.New(rand.NewPCG(1, 1)))
	own, written := map[int]int{}, 0
	for round := range rounds {
		acted := map[int]bool{}
		for range people {
			x := a.next()
			if acted[x.who] {
				t.Fatalf("%d acts twice in round %d", x.who, round)
			}
			acted[x.who] = true
			if x.who == x.whose {
				own[x.who]++
			}
			if x.write {
				written++
			}
			if x.write != (x.note != "") {
				t.Errorf("a note of %d bytes, write: %v", len(x.note), x.write)
			}
		}
	}
	for who, n := range own {
		if n != rounds/2 {
			t.Errorf("%d acts %d times of %d on their own notebook", who, n, rounds)
		}
	}
	if len(own) != people || written < people*rounds*writes/100/2 || written > people*rounds*writes/100*2 {
		t.Errorf("%d people, %d writes", len(own), written)
	}
}

func TestTheWhereaboutsOfTheCrowd(t *testing.T) {
	var w whereabouts
	if w.crowd() != 0 {
		t.Error("the crowd begins elsewhere")
	}
	w.moveTo(2)
	if w.crowd() != 2 {
		t.Error("the crowd did not move")
	}
}
