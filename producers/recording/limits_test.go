package recording

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"penstock/schemas/event"
)

// A row beyond the limits of a batch is refused where it is read, whatever the
// format, and named as it stands in the file.
func TestValuesBeyondTheLimitsAreNamed(t *testing.T) {
	const good = 1431857103
	timed := `192.0.2.1 - - [%s +0000] "GET /a/x HTTP/1.1" 200 %s "-" "-"`
	now := "17/May/2015:10:05:03"
	i64, str, f64 := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64
	for _, test := range []struct{ field, value string }{
		{"bytes", "9223372036854775807"},
		{"bytes", "137438953473"},
		{"wait_us", "9223372036854775807"},
		{"service_us", "-9223372036854775808"},
		{"network_us", "3162240000000001"},
		{"overdue_us", "-3162240000000001"},
		{"time", "9000000000000000000"},
		{"time", "-3000000000"},
		{"time", "7258118401"},
	} {
		row := map[string]string{"time": fmt.Sprint(good), "op": "read", "bytes": "1", "wait_us": "0", "service_us": "0", "network_us": "0", "overdue_us": "0"}
		names := []string{"time", "op", "bytes", "wait_us", "service_us", "network_us", "overdue_us"}
		line := func(sep string) string {
			var cells []string
			for _, n := range names {
				cells = append(cells, row[n])
			}
			return strings.Join(cells, sep)
		}
		object := func(quote string) string {
			var cells []string
			for _, n := range names {
				q := quote
				if n == "op" {
					q = `"`
				}
				cells = append(cells, fmt.Sprintf(`"%s":%s%s%s`, n, q, row[n], q))
			}
			return "{" + strings.Join(cells, ",") + "}"
		}
		first, number, text := line(","), object(""), object(`"`)
		row[test.field] = test.value
		files := map[string]string{
			"csv":   save(t, "x.csv", []byte(strings.Join(names, ",")+"\n"+first+"\n"+line(",")+"\n"+first+"\n")),
			"jsonl": save(t, "x.jsonl", []byte(number+"\n"+object("")+"\n"+text+"\n")),
		}
		var ints, texts []arrow.Field
		for _, n := range names {
			kind := i64
			if n == "op" {
				kind = str
			}
			ints, texts = append(ints, field(n, kind)), append(texts, field(n, str))
		}
		// Quoted, for Arrow reads other numbers as floats. NullInt as a number
		// of a column is its absent value, as in a batch.
		if test.value != "-9223372036854775808" {
			for kind, path := range saved(t, foreign(t, ints, "["+text+","+object(`"`)+","+text+"]")) {
				files[kind+" of numbers"] = path
			}
		}
		for kind, path := range saved(t, foreign(t, texts, "["+text+","+object(`"`)+","+text+"]")) {
			files[kind+" of texts"] = path
		}
		if test.field == "bytes" {
			lines := fmt.Sprintf(timed+"\n"+timed+"\n"+timed+"\n", now, "1", now, test.value, now, "1")
			files["access log"] = save(t, "x.log", []byte(lines))
			files["common log"] = save(t, "x.log", []byte(strings.ReplaceAll(lines, ` "-" "-"`, "")))
		}
		for kind, path := range files {
			got := readAll(t, Options{}, path)
			if len(got.rows) != 2 || got.stats.Bad != 1 || !errors.Is(got.err, io.EOF) {
				t.Errorf("%s, %s %s: %v", kind, test.field, test.value, got)
				continue
			}
			line := int64(2)
			if kind == "csv" {
				line = 3
			}
			b := got.bad[0]
			if b.File != path || b.Line != line || b.Field != test.field || b.Got != test.value || b.Expected == "" {
				t.Errorf("%s, %s %s: %+v", kind, test.field, test.value, b)
			}
			for _, r := range got.rows {
				if err := r.Check(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	// The greatest that may be is read.
	most := fmt.Sprintf("time,op,bytes,wait_us,overdue_us\n%d,read,%d,%d,%d\n", good, int64(event.MaxRequestBytes), int64(event.MaxDelay), int64(-event.MaxDelay))
	got := readAll(t, Options{}, save(t, "x.csv", []byte(most)))
	if len(got.rows) != 1 || got.rows[0].Bytes != event.MaxRequestBytes || got.rows[0].Wait != event.MaxDelay || got.rows[0].Overdue != -event.MaxDelay {
		t.Errorf("the greatest: %v", got)
	}
	// A float that cannot be a number of bytes is named, too.
	for _, path := range saved(t, foreign(t, []arrow.Field{field("time", i64), field("op", str), field("bytes", f64)}, `[{"time":1,"op":"read","bytes":1},{"time":1,"op":"read","bytes":1e18}]`)) {
		if got := readAll(t, Options{}, path); len(got.rows) != 1 || len(got.bad) != 1 || got.bad[0].Field != "bytes" {
			t.Errorf("%s: %v", filepath.Base(path), got)
		}
	}
}

func TestTimesOutsideTheCalendarAreQuotedAsTheyStand(t *testing.T) {
	old := `192.0.2.1 - - [17/May/0015:10:05:03 +0000] "GET /a/x HTTP/1.1" 200 1 "-" "-"`
	for name, test := range map[string]struct{ content, got string }{
		"x.csv":   {"time,op,bytes\n1,read,1\n0001-01-01T00:00:00Z,read,1\n", "0001-01-01T00:00:00Z"},
		"x.jsonl": {`{"time":1,"op":"read","bytes":1}` + "\n" + `{"time":"2200-01-01T00:00:01Z","op":"read","bytes":1}`, "2200-01-01T00:00:01Z"},
		"x.log":   {fmt.Sprintf(logLine, 1, "a") + "\n" + old, "17/May/0015:10:05:03 +0000"},
	} {
		got := readAll(t, Options{}, save(t, name, []byte(test.content)))
		if len(got.rows) != 1 || len(got.bad) != 1 || got.bad[0].Field != "time" || got.bad[0].Got != test.got ||
			!strings.Contains(got.bad[0].Expected, "between 1900 and 2200") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
