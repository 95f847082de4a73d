package pace

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseSpeed(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Speed
	}{
		{"max", Max}, {"1x", 1}, {"0.5x", 0.5}, {"36000x", 36000}, {"2.25x", 2.25}, {".5x", 0.5},
	} {
		got, err := ParseSpeed(c.in)
		if err != nil || got != c.want {
			t.Errorf("%q: got %v, %v; expected %v", c.in, got, err, c.want)
		}
		if back, err := ParseSpeed(got.String()); err != nil || back != got {
			t.Errorf("%q: %v came back as %v, %v", c.in, got, back, err)
		}
	}
	for _, in := range []string{"", "x", "1", "0x", "-1x", "+1x", "1e3x", "infx", "nanx", "NaNx", "0x10x", "1 x", "1X", "Max", "2000000000x", "0.0000001x", "1_000x", "fast"} {
		if got, err := ParseSpeed(in); !errors.Is(err, ErrSpeed) {
			t.Errorf("%q: got %v, %v; expected ErrSpeed", in, got, err)
		}
	}
}

// run sends rows at event times by a clock of its own and returns the wall time
// of the last. A send takes cost.
func run(p *Pacer, times []int64, cost time.Duration) time.Duration {
	now := time.Duration(0)
	for _, at := range times {
		due := p.Due(at)
		now += p.Pace(now, due)
		p.Sent(now, due)
		now += cost
	}
	return now - cost
}

func TestWallTimeIsSpanOverSpeed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ordered := make([]int64, 2000)
	for i := range ordered {
		ordered[i] = 1_500_000_000_000_000 + int64(i)*100_000
	}
	// Out of order inside 2 s: as it comes to the pacer when nobody sorts it.
	shuffled := slices.Clone(ordered)
	for i := 1; i+20 < len(shuffled)-1; i += 20 {
		rnd.Shuffle(20, func(a, b int) { shuffled[i+a], shuffled[i+b] = shuffled[i+b], shuffled[i+a] })
	}
	span := time.Duration(ordered[len(ordered)-1]-ordered[0]) * time.Microsecond
	for _, speed := range []Speed{0.5, 1, 2, 10, 1000} {
		for name, times := range map[string][]int64{"in order": ordered, "shuffled": shuffled} {
			p := &Pacer{Speed: speed}
			got := run(p, times, 10*time.Microsecond)
			want := time.Duration(float64(span) / float64(speed))
			if off := (got - want).Abs(); off > want/100 {
				t.Errorf("%v, %s: took %v, expected %v within 1 %%", speed, name, got, want)
			}
		}
	}
}

func TestAStallIsSeenInEveryRowThatItHeldUp(t *testing.T) {
	p := &Pacer{Speed: 1}
	now := time.Duration(0)
	for i := range int64(10_000) { // 100 s, a row each 10 ms
		due := p.Due(i * 10_000)
		now += p.Pace(now, due)
		if i == 5000 {
			now += 1500 * time.Millisecond
		}
		p.Sent(now, due)
	}
	l := p.Lag()
	if l.Rows != 10_000 || l.Max != 1500*time.Millisecond {
		t.Errorf("got %+v, expected 10,000 rows and a lag of at most 1.5 s", l)
	}
	// 150 rows were held up, by 1.5 s down to 0: the hundredth of them is one
	// in a hundred of all.
	if l.P99 < 490*time.Millisecond || l.P99 > 520*time.Millisecond {
		t.Errorf("99 %% within %v, expected about 0.5 s", l.P99)
	}
	if err := p.Check(2 * time.Second); err != nil {
		t.Error(err)
	}
	err := p.Check(time.Second)
	if !errors.Is(err, ErrLag) || !strings.Contains(err.Error(), "1.5s") {
		t.Errorf("got %v, expected ErrLag with 1.5s", err)
	}
	if err := p.Check(0); err != nil {
		t.Error(err)
	}
}

func TestMaxWaitsForNothing(t *testing.T) {
	p := &Pacer{}
	if got := run(p, []int64{0, 1e15, 5}, 0); got != 0 {
		t.Errorf("took %v", got)
	}
	if l := p.Lag(); l != (Lag{}) {
		t.Errorf("got %+v, expected no lag where nothing is scheduled", l)
	}
}

func TestP99AgreesWithSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lags := rapid.SliceOfN(rapid.Int64Range(0, 5_000_000), 1, 400).Draw(t, "lags")
		p := &Pacer{Speed: 1}
		for _, l := range lags {
			p.Sent(time.Duration(l)*time.Microsecond, 0)
		}
		slices.Sort(lags)
		want := lags[len(lags)-len(lags)/100-1]
		got := p.Lag().P99.Microseconds()
		if got < want || float64(got) > float64(want)*1.008 {
			t.Fatalf("got %d, expected %d", got, want)
		}
	})
}
