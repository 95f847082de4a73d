package placement

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
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

func busyOptimal() Config {
	c := busyConfig()
	c.Policy, c.Limits = Optimal, Limits{}
	return c
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
	p := busyPolicy(t, busyOptimal(), 60)
	whole := snapshot(t, p)
	restore := func(b []byte) error {
		other, err := New(busyOptimal())
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

// TestTheFirstFormatIsStillRead restores a snapshot that was written before
// failures, promises and prices were in it, and goes on from it as that version
// would: policy tmatch decides what it did, under the digests that it had.
func TestTheFirstFormatIsStillRead(t *testing.T) {
	const digest = "sha256:c987f312fed8127768810ba26c0e7092849ccfe88e5b666bce2ee7ac5bda94aa"
	old, err := os.ReadFile("testdata/first.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(busyConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Restore(bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	now := busyPolicy(t, busyConfig(), 60)
	if p.Digest() != digest || now.Digest() != digest {
		t.Errorf("digests: restored %s, decided again %s, was %s", p.Digest(), now.Digest(), digest)
	}
	r, q := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	if a, b := printed(p.Decide(benchWindow(60, 4, r))), printed(now.Decide(benchWindow(60, 4, q))); a != b {
		t.Errorf("restored it decides\n%s\notherwise\n%s", a, b)
	}
	c := busyConfig()
	c.Policy = Optimal
	optimal, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := optimal.Restore(bytes.NewReader(old)); err != nil || optimal.Digest() != digest {
		t.Errorf("policy optimal in that state: %v, digest %s", err, optimal.Digest())
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzRestore feeds bytes that have the right sum, so that what they say is
// looked at: nothing panics, and what is accepted can be used.
func FuzzRestore(f *testing.F) {
	for _, c := range []Config{busyConfig(), busyOptimal()} {
		whole := snapshot(f, busyPolicy(f, c, 12))
		f.Add(whole[:len(whole)-8])
	}
	f.Add([]byte(magic))
	f.Add([]byte(firstMagic))
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
