package topology

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestBodiesOfTwoKinds stand in order of their windows' ends, then of the kinds, then
// as on the stream, however those of the kinds came there.
func TestBodiesOfTwoKinds(t *testing.T) {
	t.Parallel()
	client := bustest.Client(t, bustest.Start(t))
	put := func(kind control.Kind, end, n int, part string) {
		t.Helper()
		at := time.Date(2026, 3, 1, 10, 0, end, 0, time.UTC)
		m := bus.Msg{
			Subject: subject.Decisions(string(kind)),
			Data:    fmt.Appendf(nil, `{"kind":%q,"n":%d,"window":{"start":%q,"end":%q}}`, kind, n, at.Add(-time.Second).Format(time.RFC3339), at.Format(time.RFC3339)),
		}
		if part != "" {
			m.Header = map[string][]string{control.HeaderPart: {part}}
		}
		if _, err := client.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	put(control.Split, 10, 1, "")
	put(control.Split, 20, 2, "")
	put(control.Split, 20, 3, "")
	put(control.Split, 30, 4, "")
	put(control.Placement, 20, 5, "1/2")
	put(control.Placement, 20, 6, "2/2") // the same again
	put(control.Placement, 40, 7, "")
	file := filepath.Join(t.TempDir(), "decisions.jsonl")
	got := func(kinds ...control.Kind) string {
		t.Helper()
		var subjects []string
		for _, k := range kinds {
			subjects = append(subjects, subject.Decisions(string(k)))
		}
		if err := writeBodies(t.Context(), client, file, subjects...); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for line := range strings.Lines(string(body)) {
			_, n, _ := strings.Cut(line, `"n":`)
			out.WriteString(n[:1])
		}
		return out.String()
	}
	if s := got(control.Placement, control.Split); s != "152347" {
		t.Errorf("order %s, expected 152347", s)
	}
	if s := got(control.Placement); s != "57" {
		t.Errorf("order %s, expected 57", s)
	}
	if s := got(control.Coding); s != "" {
		t.Errorf("order %s, expected nothing", s)
	}
	if _, err := client.Publish(t.Context(), bus.Msg{Subject: subject.Decisions(string(control.Split)), Data: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	err = writeBodies(t.Context(), client, file, subject.Decisions(string(control.Placement)), subject.Decisions(string(control.Split)))
	if err == nil || !strings.Contains(err.Error(), "decisions.split, sequence 8") {
		t.Errorf("a body without a window: %v", err)
	}
	if after, err := os.Stat(file); err != nil || after.ModTime() != before.ModTime() {
		t.Errorf("the file of before is gone: %v", err)
	}
	if err := merged(t.Context(), client, []string{subject.Decisions(string(control.Placement))}, func([]byte) error { return errEnough }); !errors.Is(err, errEnough) {
		t.Errorf("what ends the reading: %v", err)
	}
}
