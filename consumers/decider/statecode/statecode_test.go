package statecode_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"testing/iotest"

	"penstock/consumers/decider/statecode"
)

var (
	errFault  = errors.New("fault")
	errBroken = errors.New("broken")
	format    = statecode.Format{Magic: "test/1\n", Fault: errFault}
)

type all struct {
	i       int64
	n       int
	u       uint64
	yes, no bool
	f, g    float64
	s       string
	told    [][]int
	plain   [][]int
}

func code(c *statecode.Coder, v *all) {
	c.Int(&v.i)
	c.Number(&v.n)
	c.Uint(&v.u)
	c.Bool(&v.yes)
	c.Bool(&v.no)
	c.Float(&v.f)
	c.Finite(&v.g)
	c.Text(&v.s)
	statecode.List(c, &v.told, func(x *[]int) { statecode.List(c, x, c.Number) })
	statecode.ListOrNil(c, &v.plain, func(x *[]int) { statecode.ListOrNil(c, x, c.Number) })
}

func sample() all {
	return all{
		i: -1 << 62, n: -3, u: math.MaxUint64, yes: true, f: math.Inf(1), g: -0.1, s: "ü\x00",
		told: [][]int{nil, {}, {7, -7}}, plain: [][]int{nil, {1}},
	}
}

func written(t testing.TB, v all) []byte {
	t.Helper()
	var b bytes.Buffer
	c := format.Write()
	code(c, &v)
	if err := c.Seal(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := sample()
	c, err := format.Read(bytes.NewReader(written(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	var got all
	if code(c, &got); c.Err() != nil || c.Left() != 0 || !c.Reads() {
		t.Fatalf("%v, %d bytes left", c.Err(), c.Left())
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nexpected %+v", got, want)
	}
}

// The bytes are those that snapshots have had from the first version on.
func TestBytes(t *testing.T) {
	var b bytes.Buffer
	c := format.Write()
	n, none, empty, some, half := int64(-2), []int64(nil), []int64{}, []int64{64}, 0.5
	c.Int(&n)
	for _, l := range [][]int64{none, empty, some} {
		statecode.List(c, &l, c.Int)
		statecode.ListOrNil(c, &l, c.Int)
	}
	c.Float(&half)
	if err := c.Seal(&b); err != nil {
		t.Fatal(err)
	}
	want := []byte("test/1\n\x03" + "\x01\x00" + "\x00\x00" + "\x02\x80\x01\x02\x80\x01" + "\x00\x00\x00\x00\x00\x00\xe0\x3f")
	if got := b.Bytes()[:b.Len()-32]; !bytes.Equal(got, want) {
		t.Errorf("got %x\nexpected %x", got, want)
	}
}

func TestAnEmptyListComesBackAsNil(t *testing.T) {
	v := all{told: [][]int{}, plain: [][]int{}}
	c, err := format.Read(bytes.NewReader(written(t, v)))
	if err != nil {
		t.Fatal(err)
	}
	code(c, &v)
	if v.told == nil || v.plain != nil {
		t.Errorf("told %v, plain %v", v.told == nil, v.plain == nil)
	}
}

func TestFaults(t *testing.T) {
	body := written(t, sample())
	flipped := bytes.Clone(body)
	flipped[len(format.Magic)] ^= 1
	for name, b := range map[string][]byte{"nothing": nil, "another format": append([]byte("x"), body...), "cut": body[:len(body)-1], "flipped": flipped} {
		if _, err := format.Read(bytes.NewReader(b)); !errors.Is(err, errFault) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := format.Read(iotest.ErrReader(errBroken)); !errors.Is(err, errBroken) || errors.Is(err, errFault) {
		t.Errorf("a reader that fails: %v", err)
	}
	infinite := math.Inf(-1)
	c := format.Write()
	c.Finite(&infinite)
	c.Stop(errBroken) // the first fault stands
	if err := c.Seal(new(bytes.Buffer)); !errors.Is(err, errFault) || errors.Is(err, errBroken) {
		t.Errorf("a number that isn't finite: %v", err)
	}
}

func TestDigestIsOfWhatIsWritten(t *testing.T) {
	of := func(v all) string { return statecode.Digest(func(c *statecode.Coder) { code(c, &v) }) }
	one, other := sample(), sample()
	other.told[1] = nil
	if of(one) != of(sample()) || of(one) == of(other) || len(of(one)) != len("sha256:")+64 {
		t.Errorf("%s, %s", of(one), of(other))
	}
}

// Bytes that were not written are refused, or read; nothing else happens, and what was
// read is written as it was read.
func FuzzRead(f *testing.F) {
	f.Add(written(f, sample())[len(format.Magic):])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var sealed bytes.Buffer
		w := format.Write()
		for _, x := range b {
			n := int64(int8(x))
			w.Int(&n)
		}
		if err := w.Seal(&sealed); err != nil {
			t.Fatal(err)
		}
		c, err := format.Read(&sealed)
		if err != nil {
			t.Fatal(err)
		}
		var v, again all
		if code(c, &v); c.Err() != nil {
			if !errors.Is(c.Err(), errFault) {
				t.Fatal(c.Err())
			}
			return
		}
		v.f = 0 // it may be NaN, which is unlike itself
		if c, err = format.Read(bytes.NewReader(written(t, v))); err != nil {
			t.Fatal(err)
		}
		if code(c, &again); !reflect.DeepEqual(v, again) {
			t.Fatalf("%+v\n%+v", v, again)
		}
	})
}
