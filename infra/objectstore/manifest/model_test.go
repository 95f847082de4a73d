package manifest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/infra/objectstore"
)

// state is what a copy should be.
type state struct {
	mark    objectstore.Mark
	objects map[string]string
}

func (s state) String() string { return fmt.Sprint(s.mark, " ", s.objects) }

func (s state) clone() state { return state{s.mark, maps.Clone(s.objects)} }

// op is an operation on a store, and on the model: the state that follows, or
// whether it must be refused.
type op struct {
	name  string
	store func(t *rapid.T, s *Store) error
	model func(s state) (next state, refused error)
}

var modelMarks = []objectstore.Mark{
	{},
	{State: objectstore.Live, Version: 1},
	{State: objectstore.Retired, Version: 2, Site: "b"},
	{State: objectstore.Incoming, Version: 3, By: "m"},
}

func admits(s state, as objectstore.Mark) bool {
	if as == (objectstore.Mark{}) {
		return s.mark.Writable() || s.mark.State == objectstore.Absent
	}
	return s.mark == as
}

func drawOp(t *rapid.T) op {
	name := rapid.SampledFrom([]string{"a", "b", "c/d"}).Draw(t, "name")
	as := rapid.SampledFrom(modelMarks).Draw(t, "as")
	to := rapid.SampledFrom(modelMarks).Draw(t, "to")
	content := rapid.StringN(0, 5, -1).Draw(t, "content")
	ops := []op{
		{"put", func(t *rapid.T, s *Store) error {
			_, err := s.Put(t.Context(), "o", name, strings.NewReader(content), as)
			return err
		}, func(s state) (state, error) {
			if !admits(s, as) {
				return s, objectstore.ErrMarked
			}
			next := s.clone()
			if s.mark.State == objectstore.Absent {
				next = state{objects: map[string]string{}}
			}
			next.objects[name] = content
			return next, nil
		}},
		{"remove", func(t *rapid.T, s *Store) error { return s.Remove(t.Context(), "o", name, as) }, func(s state) (state, error) {
			switch {
			case s.mark.State == objectstore.Absent:
				return s, objectstore.ErrNoOwner
			case !admits(s, as):
				return s, objectstore.ErrMarked
			}
			next := s.clone()
			delete(next.objects, name)
			return next, nil
		}},
		{"create", func(t *rapid.T, s *Store) error { return s.Create(t.Context(), "o", as) }, func(s state) (state, error) {
			if !admits(s, as) {
				return s, objectstore.ErrMarked
			}
			if s.mark.State == objectstore.Absent {
				return state{objects: map[string]string{}}, nil
			}
			return s, nil
		}},
		{"mark", func(t *rapid.T, s *Store) error { return s.Mark(t.Context(), "o", as, to) }, func(s state) (state, error) {
			if s.mark != as {
				return s, objectstore.ErrMarked
			}
			next := s.clone()
			next.mark = to
			return next, nil
		}},
		{"held mark", func(t *rapid.T, s *Store) error {
			h, err := s.Hold(t.Context(), "o", "")
			if err != nil {
				return err
			}
			defer h.Release()
			return h.Mark(t.Context(), as, to)
		}, func(s state) (state, error) {
			switch {
			case s.mark.State == objectstore.Absent:
				return s, objectstore.ErrNoOwner
			case s.mark != as:
				return s, objectstore.ErrMarked
			}
			next := s.clone()
			next.mark = to
			return next, nil
		}},
		{"delete", func(t *rapid.T, s *Store) error { return s.Delete(t.Context(), "o", as) }, func(s state) (state, error) {
			switch {
			case s.mark.State == objectstore.Absent:
				return s, nil
			case s.mark != as:
				return s, objectstore.ErrMarked
			}
			return state{mark: absent()}, nil
		}},
	}
	// Writing is what happens most.
	return ops[rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 3, 4, 5}).Draw(t, "op")]
}

// observe reads the whole copy, as often as it takes.
func observe(t *rapid.T, s *Store) state {
	for {
		l, err := s.List(t.Context(), "o")
		if errors.Is(err, objectstore.ErrNoOwner) {
			return state{mark: absent()}
		}
		if errors.Is(err, errLine) {
			continue
		}
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		got := state{mark: l.Mark, objects: map[string]string{}}
		for _, o := range l.Objects {
			var b []byte
			for {
				r, err := s.Open(t.Context(), "o", o.Name)
				if errors.Is(err, errLine) {
					continue
				}
				if err != nil {
					t.Fatalf("open %s: %v", o.Name, err)
				}
				if b, err = io.ReadAll(r); err != nil {
					t.Fatalf("read %s: %v", o.Name, err)
				}
				break
			}
			got.objects[o.Name] = string(b)
		}
		return got
	}
}

// TestModel compares a store over a line that is cut at any moment with a model.
// After an error nobody knows whether the operation was done, or will be: then
// there are several states that the copy may be in, until a write that is
// acknowledged tells.
func TestModel(t *testing.T) {
	faults := 0
	rapid.Check(t, func(t *rapid.T) {
		f := newFaulty(rapid.Uint64().Draw(t, "seed"), 15)
		s := New(f, Options{Lease: 5 * time.Millisecond, Poll: 20 * time.Microsecond, Grace: time.Microsecond, Orphan: time.Millisecond})
		defer s.Close()
		may := []state{{mark: absent()}}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			o := drawOp(t)
			err := o.store(t, s)
			var next []state
			for _, m := range may {
				then, refused := o.model(m)
				switch {
				case err == nil && refused == nil:
					next = append(next, then)
				case err == nil:
				case refused != nil && errors.Is(err, refused):
					next = append(next, m)
				case definitive(err):
				default:
					next = append(next, m, then)
				}
			}
			if len(next) == 0 {
				t.Fatalf("%s: %v; the copy may be %v", o.name, err, may)
			}
			may = next
			got := observe(t, s)
			i := slices.IndexFunc(may, func(m state) bool { return m.mark == got.mark && maps.Equal(m.objects, got.objects) })
			if i < 0 {
				t.Fatalf("after %s (%v) the copy is %v, may be %v", o.name, err, got, may)
			}
			if err == nil && o.name == "put" {
				may = may[i : i+1] // what was under way came too late
			}
		}
		f.heal()
		for _, err := range []error{markAny(t, s), s.Delete(t.Context(), "o", modelMarks[2])} {
			if err != nil {
				t.Fatal(err)
			}
		}
		_ = s.Close()
		if n := len(f.blobs["o"]); n > 0 {
			t.Fatalf("%d blobs are left of a deleted copy", n)
		}
		faults += f.faults
	})
	if faults == 0 {
		t.Error("nothing went wrong")
	}
	t.Logf("%d faults", faults)
}

// markAny retires the copy, whatever it is.
func markAny(t *rapid.T, s *Store) error {
	m, err := s.Stat(t.Context(), "o")
	if err != nil {
		return err
	}
	return s.Mark(t.Context(), "o", m, modelMarks[2])
}

// definitive reports that an error says that nothing was done.
func definitive(err error) bool {
	return errors.Is(err, objectstore.ErrMarked) || errors.Is(err, objectstore.ErrNoOwner)
}
