package report

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/consumers/decider"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// TestStatusTellsWhatIsNotKnown: a partition that never flushed, and one whose
// last message is no commit, leave the group without a watermark and behind.
func TestStatusTellsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 2 })
	client := bustest.Client(t, b)
	send := func(to string, c window.Commit, body []byte) {
		t.Helper()
		var err error
		if body == nil {
			c.Flush = "F"
			if body, err = c.Encode(); err != nil {
				t.Fatal(err)
			}
		}
		_, err = client.Publish(t.Context(), bus.Msg{
			Subject: to, Data: body,
			Header: map[string][]string{event.HeaderSchema: {window.CommitSchema}, window.HeaderFlush: {"F"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	status := func(want ...string) {
		t.Helper()
		s, err := NewStatus(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := s.Print(&text); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text.String(), "\n")
		for _, w := range want {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, w) }) {
				t.Errorf("no line %q in\n%s", w, &text)
			}
		}
		if body, err := json.Marshal(s); err != nil || strings.Contains(string(body), "0001-01-01") {
			t.Errorf("%s, %v", body, err)
		}
	}
	status("nothing decided yet", "owners: watermark none yet, 0 ")
	send(subject.Events(0, "web"), window.Commit{}, []byte("x"))
	status("nothing decided yet", "owners: watermark none yet, 1 messages of EVENTS behind", "fast: watermark none yet, 1 ")
	covered := commit(window.Owners, 0, 5, 5)
	covered.Covered = 1
	send(subject.Windows(window.Owners, 0), covered, nil)
	status("owners: watermark none yet, 1 ")
	covered.Partition, covered.Watermark = 1, 2*3600e6
	send(subject.Windows(window.Owners, 1), covered, nil)
	status("owners: watermark 1970-01-01T01:00:00Z, 0 ")
	send(subject.Windows(window.Owners, 1), window.Commit{}, []byte("{"))
	status("owners: watermark none yet, 1 ", "FAULT: windows.owners.1, sequence 3: commit: ")
}

// TestStatusTellsWhatTheOperatorWaitsFor: a rollback is pending until a decision
// that knew of it says nothing of waiting, and sites that are emptied are named.
func TestStatusTellsWhatTheOperatorWaitsFor(t *testing.T) {
	t.Parallel()
	client := bustest.Client(t, bustest.Start(t))
	kv, err := client.KV(t.Context(), subject.OperatorKV)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	set := func(key string, s control.Switch) uint64 {
		t.Helper()
		s.Version, s.At = 1, at
		body, err := control.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		rev, err := kv.Put(t.Context(), key, body)
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	decided := func(revision uint64, reasons ...control.Reason) {
		t.Helper()
		hash := "sha256:" + strings.Repeat("0", 64)
		body, err := control.Encode(control.Decision{
			Version: 1, Kind: control.Placement, Mode: control.Act, Reasons: reasons, Commands: []control.CommandRef{},
			Window: control.Window{Start: at, End: at.Add(time.Hour)}, Operator: control.Operator{Mode: control.Act}, Policy: hash, State: hash,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Publish(t.Context(), bus.Msg{
			Subject: subject.Decisions(string(control.Placement)), Data: body,
			Header: map[string][]string{control.HeaderOperator: {strconv.FormatUint(revision, 10)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, pending bool) {
		t.Helper()
		s, err := NewStatus(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := s.Print(&text); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(text.String(), "a rollback to 2026-03-01T10:00:00Z waits"); said != pending || len(s.Faults) > 0 {
			t.Errorf("%s: said that a rollback waits: %v, expected %v\n%s", what, said, pending, &text)
		}
		if !strings.Contains(text.String(), "being emptied: east\n") {
			t.Errorf("%s: the site being emptied is missing in\n%s", what, &text)
		}
	}
	set(control.EvacuateKey("west"), control.Switch{})
	before := set(control.EvacuateKey("east"), control.Switch{On: true})
	check("nothing asked", false)
	rev := set(control.RollbackKey(control.Placement), control.Switch{After: &at})
	check("nothing decided", true)
	decided(before)
	check("decided without knowing", true)
	decided(rev, control.Reason{Code: decider.RollbackWaits, Text: "waits"})
	check("it waits", true)
	decided(rev)
	check("carried out", false)
}
