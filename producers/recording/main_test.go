package recording

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/producers/accesslog"
	"penstock/schemas/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// save writes a file and returns its path.
func save(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is all that came of reading files.
type result struct {
	rows  []event.Request
	pos   []Position
	bad   []BadLine
	notes []string
	stats Stats
	err   error // io.EOF if all went well
}

var testLogs = accesslog.Options{Key: []byte("key of the tests")}

// readAll reads files to their end, or to an error.
func readAll(t testing.TB, o Options, files ...string) result {
	t.Helper()
	var res result
	o.AccessLog = testLogs
	o.Bad = func(b BadLine) {
		b.Raw = append([]byte{}, b.Raw...)
		res.bad = append(res.bad, b)
	}
	o.Note = func(_, text string) { res.notes = append(res.notes, text) }
	r, err := Open(files, o)
	if err != nil {
		res.err = err
		return res
	}
	for {
		var q event.Request
		if res.err = r.Next(&q); res.err != nil {
			break
		}
		res.rows = append(res.rows, q)
		res.pos = append(res.pos, r.Pos())
	}
	var q event.Request
	if again := r.Next(&q); !errors.Is(again, res.err) {
		t.Errorf("after %v came %v", res.err, again)
	}
	res.stats = r.Stats()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error("closed twice:", err)
	}
	if err := r.Next(&q); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if got := res.stats; got.Rows != int64(len(res.rows)) && errors.Is(res.err, io.EOF) || got.Bad != int64(len(res.bad)) {
		t.Errorf("%d rows and %d bad lines, stats say %+v", len(res.rows), len(res.bad), got)
	}
	return res
}

// String writes out what was read, for golden files.
func (r result) String() string {
	var b strings.Builder
	for i := range r.rows {
		fmt.Fprintf(&b, "row %d: %s\n", r.pos[i].Line, describe(&r.rows[i]))
	}
	for _, bad := range r.bad {
		bad.File = filepath.Base(bad.File)
		fmt.Fprintf(&b, "bad: %s\n", bad.Error())
	}
	for _, n := range r.notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	fmt.Fprintf(&b, "%d rows, %d bad, %d blank", r.stats.Rows, r.stats.Bad, r.stats.Blank)
	if !errors.Is(r.err, io.EOF) {
		fmt.Fprintf(&b, ", error")
	}
	return b.String() + "\n"
}

// describe writes out the columns that are there.
func describe(r *event.Request) string {
	s := time.UnixMicro(r.Time).UTC().Format(time.RFC3339Nano)
	for c := colMark; c < numColumns; c++ {
		if text := appendColumn(nil, r, c); len(text) > 0 && string(text) != "0" {
			s += fmt.Sprintf(" %s=%s", c, text)
		}
	}
	return s
}
