package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/admin"
)

// TestCoderStatusTellsOfTheLastScrub: what it left is a fault, with when it was found;
// what is whole or repaired is not.
func TestCoderStatusTellsOfTheLastScrub(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	found := coder.Report{Versions: 5, Bytes: 1000, Faults: map[string]int64{"missing": 3, "damaged": 1}, Lacking: 2}
	lost := found
	lost.Unreadable = 2
	lost.Lost = []coder.Name{
		{Bucket: "b", Key: "x\x1b[2J", Version: "v1", Unsure: true}, {Bucket: "b", Key: "y/z", Version: "v2", Part: 3, Upload: "u"},
	}
	for _, c := range []struct {
		name string
		s    admin.Status
		want []string
	}{
		{"none", admin.Status{}, nil},
		{
			"whole",
			admin.Status{LastScrub: &admin.Scrub{Report: &coder.Report{Versions: 5, Bytes: 1000}}},
			[]string{"last scrub: 5 versions, 1.0 KB read (ended 2026-03-01T12:00:30Z, 1h0m0s ago, without repair)"},
		},
		{
			"found",
			admin.Status{LastScrub: &admin.Scrub{Report: &found}},
			[]string{"LAST SCRUB FOUND 1 strips damaged, 3 strips missing, 2 blobs lacking; of 5 versions, 1.0 KB read (ended 2026-03-01T12:00:30Z, 1h0m0s ago, without repair)"},
		},
		{
			"repaired, and cut off",
			admin.Status{LastScrub: &admin.Scrub{Report: &found, Repair: true, Error: "closed"}},
			[]string{"last scrub: 5 versions, 1.0 KB read, 1 strips damaged, 3 strips missing, 2 blobs lacking (ended 2026-03-01T12:00:30Z, 1h0m0s ago, before all was looked at: closed)"},
		},
		{
			"lost",
			admin.Status{Unreadable: 1, LastScrub: &admin.Scrub{Report: &lost, Repair: true}},
			[]string{
				"UNREADABLE: 1 versions, of which too few strips are whole though all their stores answered",
				"LAST SCRUB FOUND 1 strips damaged, 3 strips missing, 2 blobs lacking, 2 versions UNREADABLE; of 5 versions, 1.0 KB read (ended 2026-03-01T12:00:30Z, 1h0m0s ago)",
				`UNREADABLE "b/x\x1b[2J", version v1: some of its stores did not answer`,
				"UNREADABLE b/y/z part 3 of upload u under way, version v2",
			},
		},
	} {
		c.s.Now = began.Add(time.Hour + 30*time.Second)
		if c.s.LastScrub != nil {
			c.s.LastScrub.Began, c.s.LastScrub.Seconds = began, 30
		}
		var out bytes.Buffer
		printCoder(&out, &c.s)
		lines := strings.Split(out.String(), "\n")
		if got := strings.Join(lines[1:1+len(c.want)], "\n"); got != strings.Join(c.want, "\n") || !strings.HasPrefix(lines[1+len(c.want)], "codes now") {
			t.Errorf("%s:\n%s", c.name, out.String())
		}
	}
}

// TestCoderStatusTellsOfAbsentStores, and what to do.
func TestCoderStatusTellsOfAbsentStores(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printCoder(&out, &admin.Status{Stores: []admin.Store{{Name: "a"}, {Name: "b", Dead: true, Absent: true}, {Name: "c", Dead: true}}})
	for _, want := range []string{"store a: answers", "store b: ABSENT: it has no owner marker", "penstock coder store-is-new b", "store c: DEAD"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// TestCoderScrubNamesTheFirst: twenty of the unreadable versions are printed, and how many
// more there are.
func TestCoderScrubNamesTheFirst(t *testing.T) {
	t.Parallel()
	r := coder.Report{Unreadable: 1200}
	for i := range 1000 {
		r.Lost = append(r.Lost, coder.Name{Bucket: "b", Key: fmt.Sprint(1000 + i), Version: "v"})
	}
	var out bytes.Buffer
	printLost(&out, &r)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 21 || lines[0] != "UNREADABLE b/1000, version v" || lines[19] != "UNREADABLE b/1019, version v" ||
		lines[20] != "UNREADABLE and 1180 more: --json names 1000 in all" {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	printLost(&out, &coder.Report{})
	if out.Len() > 0 {
		t.Errorf("%s", out.String())
	}
	if text := lostText(&coder.Name{Key: "k", Version: "v"}); text != "/k, version v: overwritten or deleted meanwhile" {
		t.Error(text)
	}
}
