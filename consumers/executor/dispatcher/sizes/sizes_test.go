package sizes

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func newSizes(t testing.TB, o Options) *Sizes {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatIsKnown goes from the default to the mean of all, of the class and of the path.
func TestWhatIsKnown(t *testing.T) {
	t.Parallel()
	s := newSizes(t, Options{Default: 500})
	expect := func(what, class string, key uint64, body, want int64) {
		t.Helper()
		if got := s.Of(class, key, body); got != want {
			t.Errorf("%s: got %d, expected %d", what, got, want)
		}
	}
	expect("default", "page", 1, 0, 500)
	expect("default and a body", "page", 1, 20, 520)
	expect("a body of unknown length", "page", 1, -1, 500)
	s.Learn("page", 1, 1000)
	s.Learn("page", 2, 3000)
	expect("path", "page", 1, 7, 1007)
	expect("class", "page", 3, 0, 2000)
	expect("all", "image", 1, 0, 2000)
	s.Learn("image", 1, 8000)
	expect("the same path in another class", "page", 1, 0, 1000)
	expect("mean of the class", "image", 9, 0, 8000)
	expect("mean of all", "other", 9, 0, 4000)
	s.Learn("page", 1, -1)
	expect("what is no size is left out", "page", 1, 0, 1000)
	s.Learn("page", 4, math.MaxInt64)
	expect("the sum is held", "page", 4, math.MaxInt64, math.MaxInt64)
}

// TestMeanFollows: the mean of a path is that of all answers at first, and then follows.
func TestMeanFollows(t *testing.T) {
	t.Parallel()
	s := newSizes(t, Options{})
	for _, v := range []int64{100, 200, 300, 400, 500} {
		s.Learn("a", 1, v)
	}
	if got := s.Of("a", 1, 0); got != 300 {
		t.Errorf("after five: %d, expected their mean", got)
	}
	s.Learn("a", 1, 1300)
	if got := s.Of("a", 1, 0); got != 500 {
		t.Errorf("got %d, expected a fifth of the way to 1300", got)
	}
	for range 30 {
		s.Learn("a", 1, 10000)
	}
	if got := s.Of("a", 1, 0); got < 9900 {
		t.Errorf("got %d after 30 of 10000", got)
	}
}

// TestTableAgainstPlain compares a table with a list that is searched from end to end.
func TestTableAgainstPlain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		type known struct {
			id uint64
			v  []float64
		}
		var list []known // the newest last
		var evicted int64
		var tab table
		most := rapid.IntRange(1, 5).Draw(r, "most")
		tab.init(most)
		find := func(id uint64) int {
			for i := range list {
				if list[i].id == id {
					return i
				}
			}
			return -1
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			id := rapid.Uint64Range(0, 7).Draw(r, "id")
			i := find(id)
			if rapid.Bool().Draw(r, "get") {
				v, ok := tab.get(id)
				if ok != (i >= 0) {
					r.Fatalf("%d is there: %v, expected %v", id, ok, i >= 0)
				}
				if ok {
					k := list[i]
					list = append(append(list[:i:i], list[i+1:]...), k)
					want := 0.0
					for j, x := range k.v {
						want += (x - want) / min(5, float64(j+1))
					}
					if math.Abs(v-want) > 1e-6 {
						r.Fatalf("%d is %v, expected %v", id, v, want)
					}
				}
				continue
			}
			v := float64(rapid.IntRange(0, 1000).Draw(r, "v"))
			tab.put(id, v)
			k := known{id: id}
			if i >= 0 {
				k = list[i]
				list = append(list[:i:i], list[i+1:]...)
			} else if len(list) == most {
				list = list[1:]
				evicted++
			}
			k.v = append(k.v, v)
			list = append(list, k)
			if n, e := tab.state(); n != len(list) || e != evicted {
				r.Fatalf("%d entries and %d evicted, expected %d and %d", n, e, len(list), evicted)
			}
		}
	})
}

// TestBounded: neither paths nor classes grow beyond what was said, and what gave way is
// counted.
func TestBounded(t *testing.T) {
	t.Parallel()
	s := newSizes(t, Options{Entries: 100})
	for i := range 5000 {
		s.Learn(fmt.Sprint("class ", i%2000), uint64(i), int64(i))
	}
	st := s.State()
	if st.Entries != 100 || st.Evicted != 4900 || st.Classes != MaxClasses || st.Crowded != 976+976 {
		t.Errorf("got %+v", st)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newSizes(t, Options{Entries: 200})
	var tasks sync.WaitGroup
	for g := range 8 {
		tasks.Go(func() {
			for i := range 2000 {
				s.Learn(fmt.Sprint(i%5), uint64(i%300), int64(1000+g))
				if got := s.Of(fmt.Sprint(i%7), uint64(i%400), 10); got < 1010 || got > 1017 {
					t.Errorf("got %d", got)
				}
				_ = s.State()
			}
		})
	}
	tasks.Wait()
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{"default": {Default: -1}, "entries": {Entries: MaxEntries + 1}} {
		if _, err := New(o); !errors.Is(err, ErrOptions) || !strings.HasPrefix(err.Error(), want+": got ") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestOfAllocatesNothing(t *testing.T) {
	s := newSizes(t, Options{})
	for i := range 1000 {
		s.Learn("page", uint64(i), 1000)
	}
	i := uint64(0)
	if n := testing.AllocsPerRun(2000, func() {
		i++
		_ = s.Of("page", i, 3)
		s.Learn("page", i%1000, 7)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOf(b *testing.B) {
	s := newSizes(b, Options{})
	for i := range 65536 {
		s.Learn("page", uint64(i), 1000)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := uint64(0); pb.Next(); i++ {
			_ = s.Of("page", i%65536, 100)
		}
	})
}

func BenchmarkLearn(b *testing.B) {
	s := newSizes(b, Options{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := uint64(0); pb.Next(); i++ {
			s.Learn("page", i%100000, 100)
		}
	})
}
