package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// TestTheWirePage: what docs/wire.md shows is what this version reads and does.
func TestTheWirePage(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	vectors := regexp.MustCompile(`(?m)^\| (.*) \| (.*) \| (.*) \| (.*) \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(page, -1)
	if len(vectors) < 8 {
		t.Errorf("%d test vectors of partitions", len(vectors))
	}
	for _, v := range vectors {
		for i := range v {
			v[i] = strings.Trim(v[i], "` ")
		}
		owner, user, trace, hash := v[1], v[2], v[3], v[4]
		var id [16]byte
		if _, err := hex.Decode(id[:], []byte(trace)); err != nil {
			t.Fatal(err)
		}
		key := owner + user
		if owner != "" {
			key = owner
		} else if trace != "" {
			key = string(id[:])
		}
		got := [...]string{
			fmt.Sprintf("%016x", xxhash.Sum64String(key)),
			fmt.Sprint(event.Partition(owner, user, id, 8)), fmt.Sprint(event.Partition(owner, user, id, 5)),
		}
		if key == "" {
			got[0] = ""
		}
		if got != [...]string{hash, v[5], v[6]} {
			t.Errorf("%s: got %v", v[0], got)
		}
	}

	lines := block(t, page, "jsonl")
	var batch event.Requests
	if err := new(event.Decoder).Decode([]byte(lines), event.EncodingJSONL, &batch); err != nil || batch.Len() != 2 {
		t.Errorf("%d rows of the example, %v", batch.Len(), err)
	}
	if h, err := event.ParseHeader(fields(t, block(t, page, "headers batch"))); err != nil || h.Seq != 17 || h.Rows != batch.Len() {
		t.Errorf("%+v, %v", h, err)
	}
	if m, err := event.ParseMark(fields(t, block(t, page, "headers mark")), 8); err != nil || m.Kind != event.Heartbeat {
		t.Errorf("%+v, %v", m, err)
	}
	dropped := regexp.MustCompile(`Penstock-Dropped: (\d.*)`).FindStringSubmatch(page)
	f := fields(t, block(t, page, "headers batch"))
	f[event.HeaderDropped] = dropped[1:]
	if h, err := event.ParseHeader(f); err != nil || h.Dropped[0].Rows != 300 {
		t.Errorf("%+v, %v", h, err)
	}
	if !strings.Contains(page, "`a.b` is `"+subject.Encode("a.b")+"`") {
		t.Errorf("a.b is %s", subject.Encode("a.b"))
	}
	for _, c := range event.RequestFields() {
		if !strings.Contains(page, "`"+c.Name+"`") {
			t.Errorf("column %s is not on the page", c.Name)
		}
	}
}

// block is the content of the fenced block of a kind.
func block(t *testing.T, page, kind string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n```"+kind+"\n")
	text, _, end := strings.Cut(rest, "```")
	if !ok || !end {
		t.Fatalf("no block of %s", kind)
	}
	return text
}

func fields(t *testing.T, text string) event.Fields {
	t.Helper()
	f := event.Fields{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("header %q", line)
		}
		f[name] = append(f[name], value)
	}
	return f
}
