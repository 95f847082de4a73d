package replay

import (
	"context"
	"errors"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

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
	r = rejects{skip: maxSamples}
	for range maxSamples + 10 {
		if err := r.sample(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if r.seen != maxSamples {
		t.Errorf("%d samples, expected at most %d", r.seen, maxSamples)
	}
}
