package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/publisher"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

// history is what a replay leaves behind.
type history struct {
	batches  map[string]string // run, partition and sequence → headers and body
	marks    []string          // each once
	commands []string
	stores   map[string]string
	windows  []string
}

func (w *world) history(o *watch) *history {
	w.t.Helper()
	h := &history{batches: map[string]string{}, stores: w.content(), windows: o.windows}
	for _, m := range w.all(subject.EventsStream) {
		if event.IsMark(m.Header) {
			if s := fmt.Sprint(m.Header); !slices.Contains(h.marks, s) {
				h.marks = append(h.marks, s)
			}
			continue
		}
		key := fmt.Sprint(m.Header[event.HeaderRun], m.Subject, m.Header[event.HeaderSeq])
		value := fmt.Sprint(m.Header) + string(m.Data)
		if was, ok := h.batches[key]; ok && was != value {
			w.t.Errorf("batch %s was sent with two contents", key)
		}
		h.batches[key] = value
	}
	for _, m := range w.all(subject.CommandsStream) {
		h.commands = append(h.commands, m.Subject+" "+string(m.Data))
	}
	return h
}

func (h *history) compare(t *testing.T, want *history) {
	t.Helper()
	if !maps.Equal(h.batches, want.batches) {
		t.Errorf("%d batches, or their bytes, differ from the %d expected", len(h.batches), len(want.batches))
	}
	if !slices.Equal(h.marks, want.marks) {
		t.Errorf("marks\n%s\nexpected\n%s", strings.Join(h.marks, "\n"), strings.Join(want.marks, "\n"))
	}
	if !slices.Equal(h.commands, want.commands) {
		t.Errorf("commands\n%s\nexpected\n%s", strings.Join(h.commands, "\n"), strings.Join(want.commands, "\n"))
	}
	if !maps.Equal(h.stores, want.stores) {
		t.Errorf("stores\n%v\nexpected\n%v", h.stores, want.stores)
	}
	if !slices.Equal(h.windows, want.windows) {
		t.Errorf("windows\n%s\nexpected\n%s", strings.Join(h.windows, "\n"), strings.Join(want.windows, "\n"))
	}
}

// hasty is a clock that is a second on whenever it is asked, so that the cursor
// is written behind each window.
type hasty struct {
	clock.Clock
	asked time.Duration
}

func (h *hasty) Now() time.Time {
	h.asked += time.Second
	return epoch.Add(h.asked)
}

// hooked is the real publisher, with a hook before and behind its calls.
type hooked struct {
	*publisher.Publisher
	hook func(string)
}

func (h *hooked) Send(ctx context.Context, r *event.Request) error {
	h.hook("row")
	return h.Publisher.Send(ctx, r)
}

func (h *hooked) Barrier(ctx context.Context, watermark int64) error {
	h.hook("mark")
	err := h.Publisher.Barrier(ctx, watermark)
	h.hook("marked")
	return err
}

// real makes a replay use the real publisher, with batches of 16 rows.
func (w *world) real(o *Options, hook func(string)) {
	o.NewPublisher = func(ctx context.Context, run string, acked []uint64) (Publisher, error) {
		p, err := publisher.New(ctx, publisher.Options{Client: w.client, Entry: "replay", Run: run, Acked: acked, MaxRows: 16})
		return &hooked{p, hook}, err
	}
}

// A replay that is stopped anywhere, and run again, leaves the same behind,
// whether its cursor lags behind or not.
func TestAResumedReplayLeavesTheSameBehind(t *testing.T) {
	t.Run("batches one by one", func(t *testing.T) { stopAndGoOn(t, false) })
	t.Run("the real publisher", func(t *testing.T) { stopAndGoOn(t, true) })
}

func stopAndGoOn(t *testing.T, withReal bool) {
	rows := recording(6, 40)
	options := func(w *world, hook func(string)) (Options, *watch) {
		o, seen := w.options(rows, hook), &watch{}
		o.Observer = seen
		if withReal {
			w.real(&o, hook)
		}
		return o, seen
	}
	whole := newWorld(t)
	whole.start(whole.decide, whole.execute)
	steps := 0
	o, seen := options(whole, func(string) { steps++ })
	sum := mustRun(t, o)
	want := whole.history(seen)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			w.start(w.decide, w.execute)
			for kill := 0; ; kill++ {
				left := 1 + rnd.IntN(steps)
				if kill == 4 {
					left = -1
				}
				ctx, cancel := context.WithCancel(context.Background())
				o, seen := options(w, func(string) {
					if left--; left == 0 {
						cancel()
					}
				})
				if seed%2 == 0 {
					o.Clock = &hasty{Clock: clock.System()}
				}
				s, err := Run(ctx, o)
				cancel()
				if err == nil {
					w.history(seen).compare(t, want)
					if !s.Verify.OK() || s.Read != sum.Read || s.Moves != sum.Moves || s.Writes != sum.Writes || s.InTime != sum.InTime {
						t.Errorf("got %+v, expected %+v", s, sum)
					}
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("attempt %d: %v", kill, err)
				}
			}
		})
	}
}

// What was acknowledged is not sent again, and the schedule of a paced replay
// begins where the earlier attempt ended.
func TestWhatWasAnsweredIsNeitherSentNorPacedAgain(t *testing.T) {
	rows := recording(6, 40)
	attempt := func(w *world, stopAtMark int) (s Summary, batches int, err error) {
		marks := 0
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o := w.options(rows, func(what string) {
			switch what {
			case "batch":
				batches++
			case "mark":
				if marks++; marks == stopAtMark {
					cancel()
				}
			}
		})
		o.Speed, o.Clock = 1, jump{clock.NewManual(epoch)}
		s, err = Run(ctx, o)
		return s, batches, err
	}
	whole := newWorld(t)
	whole.start(whole.decide, whole.execute)
	sum, all, err := attempt(whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.start(w.decide, w.execute)
	_, _, err = attempt(w, 5)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c, err := ReadCursor(w.state)
	if err != nil || c == nil || c.Window == nil || *c.Window != epoch.Add(4*time.Hour).UnixMicro() || c.Finished {
		t.Fatalf("the cursor is %+v, %v; expected it behind the fourth window", c, err)
	}
	acked := 0
	for _, a := range c.Acked {
		acked += int(a)
	}
	s, batches, err := attempt(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	if acked == 0 || batches != all-acked {
		t.Errorf("%d batches were sent by the second attempt, expected the %d of all that the first had not got acknowledged", batches, all-acked)
	}
	if !s.Resumed || sum.Resumed || s.Read != sum.Read || s.Sent != sum.Sent {
		t.Errorf("got %+v, expected the sums of %+v", s, sum)
	}
	if s.Took < 110*time.Minute || s.Took > 2*time.Hour {
		t.Errorf("took %v, expected the two hours that were left", s.Took)
	}
}

func TestOwnersThatAreOnlyReadHaveAnEmptyObject(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	rows := recording(1, 20)
	for _, owner := range []string{"quiet", "imported"} {
		r := event.NewRequest(epoch.UnixMicro() + hour/2)
		r.User, r.Owner, r.Lat, r.Lon = ownerName(1), owner, float32(places[1].lat), float32(places[1].lon)
		rows = append(rows, r)
	}
	o := w.options(rows, nil)
	o.Disorder = 2 * time.Hour
	o.Imported = map[string]control.Location{"imported": {Site: "west", Version: 4}, "unseen": {Site: "east", Version: 1}}
	s := mustRun(t, o)
	if !s.Verify.OK() || s.Verify.Owners != owners+2 {
		t.Errorf("got %+v, expected the owners that were seen", s.Verify)
	}
	for _, key := range []string{"central/quiet/writes", "west/imported/writes"} {
		if _, ok := w.content()[key]; !ok {
			t.Errorf("there is no %s", key)
		}
	}
}

func TestSamplesOfAnEarlierAttemptAreNotParkedAgain(t *testing.T) {
	b, r := badLine(1), rejects{skip: 2} // without a client: parking would panic
	for range 2 {
		if err := r.sample(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	r = rejects{skip: reject.Samples}
	for range reject.Samples + 10 {
		if err := r.sample(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if r.seen != reject.Samples {
		t.Errorf("%d samples, expected at most %d", r.seen, reject.Samples)
	}
}
