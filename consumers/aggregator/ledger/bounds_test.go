package ledger

import (
	"fmt"
	"testing"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// books feeds messages with rising positions.
type books struct {
	*Ledger
	seq uint64
}

func (b *books) at() Position {
	b.seq++
	return Position{Seq: b.seq, Time: 1_000_000}
}

func (b *books) batch(run string, seq uint64, watermark int64) {
	b.Take(b.at(), &event.Header{Run: run, Seq: seq, Watermark: watermark}, nil, nil)
}

// TestCrowdedRunsGiveUpTheOldestGap: waiting would not help, for only reading on
// brings what is missing.
func TestCrowdedRunsGiveUpTheOldestGap(t *testing.T) {
	b := &books{Ledger: New(config(0))}
	for k := range uint64(maxRanges) {
		b.batch("A", 2*(k+1), int64(k))
	}
	if b.Total().LostBatches != 0 {
		t.Fatalf("lost %d with %d ranges", b.Total().LostBatches, maxRanges)
	}
	b.batch("A", 2*(maxRanges+1), 99)
	if b.Total().LostBatches != 1 || b.runs[0].contiguous != 2 {
		t.Fatalf("lost %d, contiguous %d", b.Total().LostBatches, b.runs[0].contiguous)
	}
	if v := b.Look("A", 1); v != Found {
		t.Fatalf("sequence 1 is %v, want found", v)
	}
	b.batch("B", 2, 1)
	b.batch("B", maxAbove, 1)
	if v := b.Look("B", 1); v != Fresh {
		t.Fatalf("%d above: sequence 1 is %v, want fresh", maxAbove, v)
	}
	b.batch("B", maxAbove+1, 1)
	if v := b.Look("B", 1); v != Found {
		t.Fatalf("%d above: sequence 1 is %v, want found", maxAbove+1, v)
	}
	// However far a mark reaches, nothing counts up to there one by one.
	b.Mark(b.at(), &event.Mark{Kind: event.Heartbeat, Run: "C", Upto: []uint64{1 << 62}})
	if got := b.runs[2].contiguous; got != 1<<62 {
		t.Fatalf("contiguous %d", got)
	}
}

func TestPendingMarksAreBounded(t *testing.T) {
	b := &books{Ledger: New(config(0))}
	b.Mark(b.at(), &event.Mark{Kind: event.Barrier, Run: "A", Watermark: 1, Upto: []uint64{1}})
	for k := range 3 * maxMarks {
		b.Mark(b.at(), &event.Mark{Kind: event.Heartbeat, Run: "A", Watermark: int64(k), Upto: []uint64{uint64(2 + k)}})
	}
	r := b.runs[0]
	if len(r.marks) > maxMarks || r.marks[0].Kind != string(event.Barrier) {
		t.Fatalf("%d marks, the first %+v", len(r.marks), r.marks[0])
	}
	for k := range 3*maxMarks + 1 {
		b.batch("A", uint64(k+1), window.NullInt)
	}
	if b.Watermark() != 3*maxMarks-1 || !b.since.barrier {
		t.Fatalf("watermark %d", b.Watermark())
	}
}

func TestLostSpansAreBounded(t *testing.T) {
	b := &books{Ledger: New(config(0))}
	for k := range uint64(2 * maxLost) {
		seq := 2 * (k + 1)
		b.Take(b.at(), &event.Header{Run: "A", Seq: seq, Dropped: []event.Dropped{{First: seq - 1, Last: seq - 1}}}, nil, nil)
	}
	r := b.runs[0]
	if len(r.lost) != maxLost || b.Total().LostBatches != 2*maxLost {
		t.Fatalf("%d spans of %d lost", len(r.lost), b.Total().LostBatches)
	}
	if b.Look("A", 1) != Duplicate || b.Look("A", 4*maxLost-1) != Found {
		t.Fatal("the highest are not those that are kept")
	}
}

// TestManyRunsFitInACommit: a publisher that crashes in a loop, sparse windows,
// many losses; the commit stays one message.
func TestManyRunsFitInACommit(t *testing.T) {
	b := &books{Ledger: New(config(0))}
	for k := range 3 * maxRuns {
		b.stream += second // as time passes
		b.Take(b.at(), &event.Header{Run: fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ%07d", k), Seq: 2, Watermark: int64(k)},
			[]int64{int64(k) * 100 * second}, []uint8{0})
	}
	for k := range 2 * maxIntervals {
		b.miss(int64(k*100), int64(k*100+1), lost, "A")
	}
	if len(b.runs) != maxRuns || len(b.retired) != maxRetired {
		t.Fatalf("%d runs, %d retired", len(b.runs), len(b.retired))
	}
	c := b.Commit()
	c.Flush = "F"
	if len(c.Incomplete) != 1 || c.Incomplete[0].To != (2*maxIntervals-1)*100+1 {
		t.Fatalf("%d intervals", len(c.Incomplete))
	}
	c.Runs = c.Runs[:maxRuns]
	body, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 700<<10 {
		t.Fatalf("a commit of %d KB", len(body)>>10)
	}
}

// TestParkedSamplesSurviveARestart counts the samples of each run, and of those
// without one.
func TestParkedSamplesSurviveARestart(t *testing.T) {
	b := &books{Ledger: New(config(0))}
	b.batch("A", 1, 1)
	for _, run := range []string{"A", "", "A", ""} {
		if !b.Park(run, 2) {
			t.Fatalf("run %q: not sampled", run)
		}
	}
	l := Restore(config(0), b.Commit())
	if l.Park("A", 2) || l.Park("", 2) || !l.Park("A", 3) || !l.Park("", 3) {
		t.Fatal("samples are not counted on")
	}
}

func TestRowsOfUnusableHeaders(t *testing.T) {
	for text, want := range map[string]int64{"": 1, "12": 12, "0": 0, "x": 1, "-1": 1, "99999999": 1} {
		if got := RowsOf(event.Fields{event.HeaderRows: {text}}); got != want {
			t.Errorf("%q: %d rows, want %d", text, got, want)
		}
	}
	if got := RowsOf(nil); got != 1 {
		t.Errorf("no header: %d rows, want 1", got)
	}
}

// TestRunsAreForgottenAfterADay, by stream time, and what they had promised
// holds on.
func TestRunsAreForgottenAfterADay(t *testing.T) {
	b := &books{Ledger: New(config(0))}
	b.batch("B", 1, 10)
	b.batch("A", 1, 50)
	for k := range 24*3600 + 1 {
		b.Mark(Position{Seq: b.seq + 1, Time: 1_000_000 + int64(k+1)*second}, &event.Mark{Kind: event.Heartbeat, Run: "B", Watermark: 20, Upto: []uint64{1}})
		b.seq++
	}
	if len(b.runs) != 1 || b.Look("A", 1) != Duplicate || b.Look("A", 2) != Retired {
		t.Fatalf("%d runs, A 2 is %v", len(b.runs), b.Look("A", 2))
	}
	if b.Watermark() != 20 {
		t.Fatalf("watermark %d", b.Watermark())
	}
	b.Mark(b.at(), &event.Mark{Kind: event.End, Run: "B", Watermark: 30, Upto: []uint64{1}})
	if b.Watermark() != 50 {
		t.Fatalf("watermark %d after the last run ended, want the furthest", b.Watermark())
	}
}
