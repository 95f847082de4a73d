package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
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
	send(subject.Events(0, "web"), window.Commit{}, []byte("x"))
	status("nothing decided yet", "owners: no watermark yet, 1 messages of EVENTS behind", "fast: no watermark yet, 1 ")
	covered := commit(window.Owners, 0, 5, 5)
	covered.Covered = 1
	send(subject.Windows(window.Owners, 0), covered, nil)
	status("owners: no watermark yet, 1 ")
	covered.Partition, covered.Watermark = 1, 2*3600e6
	send(subject.Windows(window.Owners, 1), covered, nil)
	status("owners: watermark 1970-01-01T01:00:00Z, 0 ")
	send(subject.Windows(window.Owners, 1), window.Commit{}, []byte("{"))
	status("owners: no watermark yet, 1 ", "FAULT: windows.owners.1, sequence 3: commit: ")
}
