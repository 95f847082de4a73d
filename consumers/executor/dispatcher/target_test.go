package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/inforce"
	"penstock/schemas/control"
)

// answers are what a target answered.
type answers []string

func (a *answers) take(_ context.Context, o control.Outcome) error {
	*a = append(*a, strings.TrimSuffix(fmt.Sprintf("%s %d %s %s %.20s", o.Scope, o.Epoch, o.Target, o.Status, o.Reason), " "))
	return nil
}

func order(site string, epoch uint64, t *control.ServersTable) *control.Command {
	return &control.Command{
		Version: 1, Kind: control.Servers, Scope: site, Epoch: epoch, Mode: control.Act, TTL: "1m",
		Window: control.Window{Start: began.Add(-time.Second), End: began}, Reason: control.Reason{Code: "NewTable"}, Servers: t,
	}
}

func (w *world) target(o inforce.Options) *Target {
	w.t.Helper()
	o.Clock = w.clock
	target, err := NewTarget(w.Site, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return target
}

// Epochs are kept to: each is answered, an older one is refused, one that can't be is
// rejected and the last good one stays; another site's is none of our business.
func TestTargetAnswers(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a", "b"))
	target := w.target(inforce.Options{})
	z := map[string]float64{"z": 1}
	var got answers
	for _, c := range []*control.Command{
		order("here", 2, table([]string{"a"}, z, "b")), order("here", 2, table([]string{"a"}, z, "b")), order("here", 1, table(nil, z, "a", "b")),
		order("here", 3, table([]string{"a", "b"}, z, "x")), order("here", 3, table(nil, z, "a")), order("there", 4, table(nil, z, "a")), order("here", 5, nil),
	} {
		if err := target.Apply(executor.WithSent(t.Context(), began), c, got.take); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.Decline(t.Context(), order("there", 6, nil), control.Advised, got.take); err != nil {
		t.Fatal(err)
	}
	if err := target.Decline(t.Context(), order("here", 6, nil), control.Expired, got.take); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"here 2 dispatcher done", "here 2 dispatcher already-applied", "here 1 dispatcher refused older-epoch",
		`here 3 dispatcher failed "here", epoch 3: on:`, `here 3 dispatcher failed "here", epoch 3: on:`,
		"there 4 dispatcher advised not-concerned", `here 5 dispatcher failed "here", epoch 5, has`,
		"there 6 dispatcher advised not-concerned", "here 6 dispatcher expired",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("answered\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if in := w.Table(); in.Epoch != 2 || !in.Until.Equal(began.Add(time.Minute)) {
		t.Errorf("in force is %+v", in)
	}
	if target.Kind() != control.Servers {
		t.Error("another kind")
	}
}

// A table outlives a restart, by the file and by the bus, until its time is over.
func TestTargetResumes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "servers.json")
	z := map[string]float64{"z": 1}
	before := begin(t, nil, zoneOf("z", "a", "b"))
	target := before.target(inforce.Options{File: file})
	var got answers
	if err := target.Apply(executor.WithSent(t.Context(), began), order("here", 3, table([]string{"a"}, z, "b")), got.take); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- target.Run(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != `{"site":"here","epoch":3,"until":"2026-03-01T12:01:00Z","table":{"on":["b"],"off":["a"],"zone_weights":{"z":1}}}` {
		t.Errorf("the file has %s, %v", b, err)
	}

	w := begin(t, nil, zoneOf("z", "a", "b"))
	again := w.target(inforce.Options{File: file, History: func(_ context.Context, fn func(*control.Command, time.Time) error) error {
		advised := order("here", 9, table([]string{"b"}, z, "a"))
		advised.Mode = control.Advise
		return errors.Join(
			fn(order("here", 3, table([]string{"a"}, z, "b")), began), fn(order("there", 8, table(nil, z, "a")), began), fn(advised, began),
			fn(order("here", 4, table([]string{"b"}, z, "a")), began.Add(time.Second)))
	}})
	if some, err := again.Restore(); !some || err != nil || w.Table().Epoch != 3 {
		t.Fatalf("restored %v, %v, in force is %+v", some, err, w.Table())
	}
	if err := again.Resume(t.Context(), got.take); err != nil || w.Table().Epoch != 4 {
		t.Fatalf("%v, in force is %+v", err, w.Table())
	}
	for range 2 {
		if err := again.Apply(t.Context(), order("here", 4, table([]string{"b"}, z, "a")), got.take); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 3 || got[1] != "here 4 dispatcher done" || got[2] != "here 4 dispatcher already-applied" {
		t.Errorf("answered %q", got)
	}
	w.clock.Advance(2 * time.Minute)
	if err := again.Resume(t.Context(), got.take); err != nil || w.Table().Epoch != 0 {
		t.Errorf("%v, in force is %+v", err, w.Table())
	}
	old := w.target(inforce.Options{File: file})
	if some, err := old.Restore(); some || err != nil {
		t.Errorf("restored %v, %v, after its time", some, err)
	}
	ended = make(chan error, 1)
	go func() { ended <- old.Run(ctx) }()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "null" {
		t.Errorf("the file of the default has %s, %v", b, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if some, err := w.target(inforce.Options{File: file}).Restore(); some || !errors.Is(err, inforce.ErrFile) {
		t.Errorf("restored %v, %v, of what is no file", some, err)
	}
}

// Run ends a table when its time is over.
func TestTargetEndsTables(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a", "b"))
	target := w.target(inforce.Options{})
	if err := w.Put(table([]string{"a"}, map[string]float64{"z": 1}, "b"), 1, began.Add(1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- target.Run(ctx) }()
	for range 3 {
		if err := w.clock.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Second)
	}
	for late := time.After(20 * time.Second); w.Table().Epoch != 0; {
		select {
		case <-late:
			t.Fatal("it is still in force")
		default:
			w.clock.Advance(time.Second)
		}
	}
	cancel()
	<-ended
	if _, err := NewTarget(nil, inforce.Options{}); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v", err)
	}
}
