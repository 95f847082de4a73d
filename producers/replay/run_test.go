package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/producers/replay/pace"
	"penstock/producers/replay/route"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

func TestTheLoopInLockstep(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	o, seen := w.options(recording(8, 50), nil), &watch{}
	o.Observer = seen
	var progress []Progress
	o.Progress = func(p Progress) { progress = append(progress, p) }
	s := mustRun(t, o)
	if s.Read != 8*50+owners || s.Sent != s.Read || s.InTime+s.Late+s.Future != s.Read || s.Late == 0 || s.Future == 0 {
		t.Errorf("rows: %+v", s)
	}
	if s.Order.Disordered == 0 || s.Order.Disorder < 3*time.Minute {
		t.Errorf("order: %+v, expected the late rows' minutes", s.Order)
	}
	if s.Windows != 8 || s.Decided != 8 || len(seen.windows) != 8 || seen.rows != int(s.Read) || seen.late != int(s.Late) {
		t.Errorf("%d windows, %d decided, observed %d with %d rows", s.Windows, s.Decided, len(seen.windows), seen.rows)
	}
	if s.Outcomes[control.Done] == 0 || s.Outcomes[control.Failed] == 0 || s.Moves != s.Outcomes[control.Done]+s.Outcomes[control.Failed] {
		t.Errorf("%d moves with outcomes %v, expected done and failed ones", s.Moves, s.Outcomes)
	}
	if !s.Verify.OK() || s.Verify.Owners != owners || s.Writes.Unplaced != 0 {
		t.Errorf("stores: %+v, %+v", s.Verify, s.Writes)
	}
	if len(progress) == 0 || progress[len(progress)-1].Windows != 8 {
		t.Errorf("progress: %+v", progress)
	}
	// Requests go to where the data is at their time: a moved owner's later rows
	// are served elsewhere.
	served, horizon := map[string]map[string]bool{}, int64(0)
	var d event.Decoder
	var b event.Requests
	for _, m := range w.all(subject.EventsStream) {
		if event.IsMark(m.Header) {
			continue
		}
		if err := d.Decode(m.Data, event.EncodingS2, &b); err != nil {
			t.Fatal(err)
		}
		h, err := event.ParseHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		// A watermark is a promise, and as good as the rows allow.
		newest := int64(0)
		for i := range b.Len() {
			r := b.Row(i)
			if r.Mark == event.InTime {
				newest = max(newest, r.Time)
				if r.Time < horizon-hour {
					t.Errorf("a row at %d comes after a watermark of a window later, %d", r.Time, horizon)
				}
			}
			if served[r.Owner] == nil {
				served[r.Owner] = map[string]bool{}
			}
			served[r.Owner][r.ToSite] = true
		}
		if h.Watermark < newest {
			t.Errorf("watermark %d behind a row in time at %d", h.Watermark, newest)
		}
		horizon = max(horizon, h.Watermark)
	}
	for _, line := range seen.windows[:7] {
		for _, word := range strings.Split(line, " v")[:strings.Count(line, " done")] {
			owner, to, _ := strings.Cut(word[strings.LastIndex(word, " ")+1:], "→")
			if len(served[owner]) < 2 && !served[owner][to] {
				t.Errorf("%s moved to %s and was served at %v only", owner, to, served[owner])
			}
		}
	}
}

// jump is a clock on which nobody waits: a sleep moves it.
type jump struct{ *clock.Manual }

func (j jump) Sleep(ctx context.Context, d time.Duration) error {
	j.Advance(d)
	return ctx.Err()
}

// Windows close by event time, not by the clock: the speed changes no byte (P13),
// and the wall time is span over speed (P27).
func TestSpeedChangesNothing(t *testing.T) {
	rows := recording(4, 40)
	var want *history
	for _, speed := range []string{"max", "0.5x", "1x", "2x", "10x", "36000x"} {
		w := newWorld(t)
		w.start(w.decide, w.execute)
		o, seen := w.options(rows, nil), &watch{}
		o.Observer, o.Clock = seen, jump{clock.NewManual(epoch)}
		var err error
		if o.Speed, err = pace.ParseSpeed(speed); err != nil {
			t.Fatal(err)
		}
		s := mustRun(t, o)
		h := w.history(seen)
		if want == nil {
			want = h
		}
		h.compare(t, want)
		if o.Speed == pace.Max {
			continue
		}
		span := float64(s.Last.Sub(s.First)) / float64(o.Speed)
		if off := float64(s.Took) - span; off < -0.01*span || off > 0.01*span {
			t.Errorf("%s: took %v, expected %v within 1 %%", speed, s.Took, time.Duration(span))
		}
		if s.Lag.Rows != s.InTime || s.Lag.Max > time.Microsecond {
			t.Errorf("%s: lag %+v, expected all %d rows in time", speed, s.Lag, s.InTime)
		}
	}
}

func TestALagOverTheLimitFailsTheRun(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	c, rows := jump{clock.NewManual(epoch)}, 0
	o := w.options(recording(2, 40), func(what string) {
		if what == "row" {
			if rows++; rows == 30 {
				c.Advance(20 * time.Minute) // a stall
			}
		}
	})
	o.Clock, o.Speed, o.MaxLag = c, 1, time.Minute
	s, err := try(t, o)
	if !errors.Is(err, pace.ErrLag) || s.Lag.Max < 15*time.Minute || !s.Verify.OK() {
		t.Errorf("got %v, lag %+v; expected ErrLag after the whole run", err, s.Lag)
	}
}

func TestAStallEndsTheAttemptAndNotTheReplay(t *testing.T) {
	rows := recording(2, 40)
	w := newWorld(t)
	o, manual := w.options(rows, nil), clock.NewManual(epoch)
	o.Clock = manual
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, o)
		done <- err
	}()
	if err := manual.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	manual.Advance(DefaultStall)
	err := <-done
	if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "the window ending 2016-09-14T09:00:00Z waits for its decision record on decisions.placement") {
		t.Errorf("got %v, expected ErrStalled with what is missing", err)
	}
	w.start(w.decide, w.execute)
	if s := mustRun(t, w.options(rows, nil)); !s.Verify.OK() || s.Windows != 2 {
		t.Errorf("after it: %+v", s)
	}
}

func TestOwnerlessWindowsAreNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	rows := recording(5, 20)
	third := epoch.UnixMicro() + 3*hour
	for i := range rows {
		if rows[i].Time >= third-hour && rows[i].Time < third {
			rows[i].User, rows[i].Owner = "", ""
		}
	}
	w.skip[third] = true
	w.start(w.decide, w.execute)
	if s := mustRun(t, w.options(rows, nil)); s.Windows != 5 || s.Decided != 4 || !s.Verify.OK() {
		t.Errorf("got %+v", s)
	}
}

func TestAdviceIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.advise = true
	w.start(w.decide)
	o, seen := w.options(recording(3, 30), nil), &watch{}
	o.Observer = seen
	if s := mustRun(t, o); s.Decided != 3 || s.Moves != 0 || !s.Verify.OK() {
		t.Errorf("got %+v", s)
	}
	if all := strings.Join(seen.windows, ""); !strings.Contains(all, "→") {
		t.Errorf("the observer saw no advice: %s", all)
	}
}

func TestNoWait(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide)
	o, seen := w.options(recording(6, 40), nil), &watch{}
	o.NoWait, o.Observer = true, seen
	// The mover comes late, when all is sent: as many outcomes as moves, and the
	// stores are verified where the moves have left the data.
	moves := 0
	o.BeforeVerify = func(ctx context.Context) error {
		for w.decisions() < 6 && ctx.Err() == nil {
		}
		w.start(w.execute)
		for _, m := range w.all(subject.CommandsStream) {
			if c, err := control.DecodeCommand(m.Data); err == nil && c.Placement != nil {
				moves += len(c.Placement.Moves)
			}
		}
		for len(w.all(subject.OutcomesStream)) < moves && ctx.Err() == nil {
		}
		return ctx.Err()
	}
	s := mustRun(t, o)
	if s.Windows != 6 || s.Decided != 6 || len(seen.windows) != 6 || s.Sent != s.Read {
		t.Errorf("got %+v, expected six windows, all decided in the end", s)
	}
	if moves == 0 || s.Moves != int64(moves) || !s.Verify.OK() {
		t.Errorf("%d moves, %d of them answered, stores %+v", moves, s.Moves, s.Verify)
	}
}

func TestUntil(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	o := w.options(recording(5, 40), nil)
	o.Until = epoch.Add(3 * time.Hour)
	s := mustRun(t, o)
	if s.Windows != 3 || !s.Last.Before(o.Until) || s.Last.Before(o.Until.Add(-10*time.Minute)) {
		t.Errorf("got %+v", s)
	}
	marks := w.history(&watch{}).marks
	if last := marks[len(marks)-1]; !strings.Contains(last, "end") || !strings.Contains(last, fmt.Sprint(o.Until.UnixMicro())) {
		t.Errorf("the last mark is %s, expected an end at %d", last, o.Until.UnixMicro())
	}
}

func badLine(n int64) Bad {
	return Bad{File: "a.log", Line: n, Field: "time", Got: "noon", Expected: "a time", Raw: []byte("noon?\n")}
}

func TestMalformedLinesAreCountedAndSampled(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	rows := recording(2, 30)
	o := w.options(rows, nil)
	o.Open = func(bad func(Bad)) (Source, error) {
		return &slice{rows: rows, tell: bad, bad: map[int]Bad{0: badLine(1), 7: badLine(9), len(rows): badLine(99)}}, nil
	}
	s := mustRun(t, o)
	if s.Malformed != 3 || s.Read != int64(len(rows)) {
		t.Errorf("got %+v", s)
	}
	told := 0
	for _, m := range w.all(subject.EventsStream) {
		if h, err := event.ParseHeader(m.Header); err == nil {
			told += int(h.Malformed)
		}
	}
	rejects := w.all(subject.RejectsStream)
	if told != 3 || len(rejects) != 3 {
		t.Fatalf("the publisher told of %d, %d are on REJECTS; expected 3", told, len(rejects))
	}
	m := rejects[1]
	if m.Subject != subject.Rejects("malformed", "replay") || !bytes.Equal(m.Data, []byte("noon?\n")) ||
		m.Header[reject.HeaderLine][0] != "9" || m.Header[reject.HeaderField][0] != "time" || m.Header[reject.HeaderFile][0] != "a.log" {
		t.Errorf("got %+v", m)
	}
}

func TestStrictFailsAtTheFirstMalformedLine(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	rows := recording(2, 30)
	o := w.options(rows, nil)
	o.Strict = true
	o.Open = func(bad func(Bad)) (Source, error) {
		return &slice{rows: rows, tell: bad, bad: map[int]Bad{5: badLine(6)}}, nil
	}
	s, err := try(t, o)
	if !errors.Is(err, ErrStrict) || !strings.Contains(err.Error(), "a.log line 6: field time: got \"noon\", expected a time") || s.Read != 5 {
		t.Errorf("got %v after %d rows", err, s.Read)
	}
}

func TestStandingOfAStateFolder(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	rows := recording(3, 30)
	full := func(o Options) Fingerprint {
		f, err := o.FullFingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	o := w.options(rows, nil)
	if s, err := Inspect(w.state, full(o)); s != Fresh || err != nil {
		t.Errorf("an empty folder is %v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	if _, err := Run(ctx, w.options(rows, func(string) {
		if n++; n == 60 {
			cancel()
		}
	})); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s, err := Inspect(w.state, full(o)); s != Unfinished || err != nil {
		t.Errorf("an unfinished replay is %v, %v", s, err)
	}
	other := w.options(rows, nil)
	other.Disorder = 5 * time.Second
	other.Fingerprint = Fingerprint{"recording": "another"}
	_, err := try(t, other)
	if !errors.Is(err, ErrDifferent) || !strings.Contains(err.Error(), "disorder was 1m0s and is 5s; recording was test and is another") {
		t.Errorf("got %v, expected ErrDifferent that names disorder and recording", err)
	}
	// The speed is no difference.
	o.Speed, o.Clock = 36000, jump{clock.NewManual(epoch)}
	if s := mustRun(t, o); !s.Resumed {
		t.Errorf("got %+v", s)
	}
	if s, err := Inspect(w.state, full(other)); s != Finished || err != nil {
		t.Errorf("a finished replay is %v, %v", s, err)
	}
	if _, err := try(t, o); !errors.Is(err, ErrFinished) {
		t.Errorf("got %v, expected ErrFinished", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*Options){
		"client": func(o *Options) { o.Client = nil }, "input": func(o *Options) { o.Open = nil },
		"publisher": func(o *Options) { o.NewPublisher = nil }, "state": func(o *Options) { o.StateDir = "" },
		"sites": func(o *Options) { o.Sites = nil }, "store": func(o *Options) { o.Sites = []Site{{Name: "a"}} }, "width": func(o *Options) { o.Width = time.Millisecond },
		"width of the bus": func(o *Options) { o.Width = 30 * time.Minute },
	} {
		o := w.options(nil, nil)
		change(&o)
		if _, err := try(t, o); !errors.Is(err, ErrOption) {
			t.Errorf("%s: got %v, expected ErrOption", name, err)
		}
	}
}

func TestRecordedRoutesAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.start(w.decide, w.execute)
	rows := recording(3, 30)
	for i := range rows {
		// Each owner is served by the site of its number, as the decider believes.
		var o int
		if _, err := fmt.Sscanf(rows[i].Owner, "user%d", &o); err != nil {
			t.Fatal(err)
		}
		rows[i].ToSite = places[o%len(places)].name
	}
	o := w.options(rows, nil)
	o.Route = route.Recorded
	if s := mustRun(t, o); !s.Verify.OK() || s.Verify.Owners != owners || s.Moves == 0 {
		t.Errorf("got %+v", s)
	}
}

func TestAnEmptyInputIsARun(t *testing.T) {
	w := newWorld(t)
	if s := mustRun(t, w.options(nil, nil)); s.Read != 0 || !s.First.IsZero() {
		t.Errorf("got %+v", s)
	}
}
