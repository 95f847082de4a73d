package placement

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"

	"penstock/schemas/control"
)

// busyPolicy has some of everything that a snapshot holds.
func busyPolicy(t testing.TB, c Config, owners int) *Policy {
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 10))
	for n := 1; n <= 3; n++ {
		out := p.Decide(benchWindow(owners, n, r))
		for i, command := range out.Commands {
			for j, m := range command.Placement.Moves {
				if status := []control.Status{control.Done, control.Failed, control.Refused, ""}[(i+j)%4]; status != "" {
					p.Apply(&control.Outcome{Owner: m.Owner, Move: m.Version, Status: status})
				}
			}
		}
	}
	return p
}

func busyConfig() Config {
	c := benchConfig(400, rand.New(rand.NewPCG(3, 4)))
	c.Friends = []Friend{{"u000000001", "u000000002", 1 << 40}}
	return c
}

// TestASnapshotUnderAnotherConfiguration restores into one that names fewer
// sites, in another order: what is known stays known by name.
func TestASnapshotUnderAnotherConfiguration(t *testing.T) {
	p := busyPolicy(t, busyConfig(), 400)
	c := busyConfig()
	slices.Reverse(c.Sites)
	gone := c.Sites[0].Name
	c.Sites = c.Sites[1:]
	other, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Restore(bytes.NewReader(snapshot(t, p))); err != nil {
		t.Fatal(err)
	}
	if p.Digest() != other.Digest() {
		t.Errorf("the digest hangs on the configuration: %s, %s", p.Digest(), other.Digest())
	}
	stranded := 0
	for id := range int32(p.state.names.len()) {
		owner := p.state.names.at(id)
		a, _ := p.Explain(owner)
		b, _ := other.Explain(owner)
		x, y := a.(Explanation), b.(Explanation)
		if x.Site != y.Site || x.Version != y.Version || x.MovingTo != y.MovingTo || x.Friends != y.Friends {
			t.Fatalf("%s: was %+v, is %+v", owner, x, y)
		}
		if x.Site == gone {
			stranded++
		}
	}
	out := other.Decide(benchWindow(400, 4, rand.New(rand.NewPCG(1, 1))))
	for _, command := range out.Commands {
		for _, m := range command.Placement.Moves {
			if m.From == gone || m.To == gone {
				t.Errorf("a move of a site that is no longer there: %+v", m)
			}
		}
	}
	for _, r := range out.Reasons {
		if r.Code == "UnknownSite" && r.Scope == "" && stranded > 0 {
			stranded = 0
		}
	}
	if stranded != 0 {
		t.Errorf("%d owners at %s without a reason: %v", stranded, gone, out.Reasons)
	}
	// And back: nothing was lost on the way.
	again, err := New(busyConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Restore(bytes.NewReader(snapshot(t, other))); err != nil || again.Digest() != other.Digest() {
		t.Errorf("back under the first configuration: %v", err)
	}
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	p := busyPolicy(t, busyConfig(), 60)
	whole := snapshot(t, p)
	restore := func(b []byte) error {
		other, err := New(busyConfig())
		if err != nil {
			t.Fatal(err)
		}
		return other.Restore(iotest.HalfReader(bytes.NewReader(b)))
	}
	if err := restore(whole); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(whole); i += 61 {
		if err := restore(whole[:i]); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut at %d of %d: %v", i, len(whole), err)
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 0x41
		if err := restore(bad); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("byte %d of %d changed: %v", i, len(whole), err)
		}
	}
	broken := errors.New("broken")
	other, _ := New(busyConfig())
	if err := other.Restore(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("the reader's error is lost: %v", err)
	}
	if err := p.Snapshot(failing{broken}); !errors.Is(err, broken) {
		t.Errorf("the writer's error is lost: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzRestore feeds bytes that have the right sum, so that what they say is
// looked at: nothing panics, and what is accepted can be used.
func FuzzRestore(f *testing.F) {
	whole := snapshot(f, busyPolicy(f, busyConfig(), 12))
	f.Add(whole[:len(whole)-8])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := New(busyConfig())
		if err != nil {
			t.Fatal(err)
		}
		b = binary.LittleEndian.AppendUint64(bytes.Clone(b), xxhash.Sum64(b))
		if err := p.Restore(bytes.NewReader(b)); err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		p.Decide(benchWindow(12, 5, rand.New(rand.NewPCG(1, 1))))
		snapshot(t, p)
	})
}
