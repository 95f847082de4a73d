package recording

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"penstock/producers/accesslog"
)

const requestLine = `192.0.2.1 - - [01/Jan/2020:00:00:0%d +0000] "GET /%s HTTP/1.1" 200 1 "-" "-"`

// Logs as a container runtime, or nobody, wrote them: parts are joined, several
// objects on a line are rows, what breaks off is counted and not fatal (P09).
func TestLogsOfAllKinds(t *testing.T) {
	const cri = "2026-01-24T01:37:00.5Z "
	line := func(i int, owner string) string { return fmt.Sprintf(requestLine, i, owner) }
	object := func(i int) string {
		return fmt.Sprintf(`{"timestamp": "2020-01-01T00:00:0%dZ", "method": "GET", "path": "/o%d", "status": "200", "bytes": 1}`, i, i)
	}
	a := line(1, "a")
	for _, c := range []struct {
		name, content, format, want string
	}{
		{
			"parts of a container's line", cri + "stdout P " + a[:20] + "\n" + cri + "stderr F\n" + cri + "stdout F " + a[20:] + "\n" + cri + "stdout F " + line(2, "b") + "\n", "",
			`row 3: a
row 4: b
note: format combined (confidence 1.00: 2 of the first 2 lines), behind a CRI prefix
2 rows, 0 bad, 0 blank
`,
		}, {
			"a part at the end", cri + "stdout F " + a + "\n" + cri + "stdout P " + line(2, "b") + "\n", "",
			`row 1: a
bad: x line 2: field line: got "192.0.2.1 - - [01/Jan/2020:00:00:02 +0000] \"GET /b HTTP/1.1\" 200 1 \"-\" \"-\"", expected the parts behind it
note: format combined (confidence 1.00: 1 of the first 1 lines), behind a CRI prefix
1 rows, 1 bad, 0 blank
`,
		}, {
			"what is not wrapped as the others", cri + "stdout F " + a + "\n" + cri + "stdout F " + line(2, "b") + "\n" + line(3, "c") + "\n", "",
			`row 1: a
row 2: b
bad: x line 3 column 1: field prefix: got "192.0.2.1 - - [01/Jan/2020:00:00:03 +0000] \"GET /c HTTP/1.1\" 200 1 \"-\" \"-\"", expected <time> stdout F before the line, as a container runtime writes it
note: format combined (confidence 0.67: 2 of the first 3 lines), behind a CRI prefix
2 rows, 1 bad, 0 blank
`,
		}, {
			"objects behind each other, and half a one", object(1) + object(2) + "\n\n" + object(3) + " " + object(4)[:50], "",
			`row 1: o1
row 1: o2
row 3: o3
bad: x line 3 column 1: field object: got "{\"timestamp\": \"2020-01-01T00:00:04Z\", \"method\": \"G", expected a JSON object (cannot parse JSON: cannot parse object: cannot parse object value: cannot parse string: missing closing '"')
note: format json (confidence 0.50: 1 of the first 2 lines)
3 rows, 1 bad, 1 blank
`,
		}, {
			"a table whose header is no recording's", "\xef\xbb\xbftimestamp,method,url,response\n1577836800,GET,/a,200\n1577836801,PUT,/b\ntimestamp,method,url,response\n", "",
			`row 2: a
bad: x line 3 column 1: field record: got "3 fields", expected 4 fields
note: format table (confidence 0.75: 3 of the first 4 lines)
1 rows, 1 bad, 0 blank
`,
		}, {
			"a named format of a file that is recognised as something else", `{"time": 1, "op": "read", "bytes": 1, "method": "GET", "url": "/a"}` + "\n", "json",
			`row 1: a
note: format json (named)
1 rows, 0 bad, 0 blank
`,
		},
	} {
		o := Options{Log: accesslog.ChoiceOptions{Name: c.format}}
		got := readAll(t, o, save(t, "x", []byte(c.content)))
		text := got.String()
		for i := range got.rows {
			text = strings.Replace(text, describe(&got.rows[i]), got.rows[i].Owner, 1)
		}
		if text != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.name, text, c.want)
		}
	}
}

// A recording's own objects and tables stay recordings, whatever else is in them.
func TestRecordingsAreNoLogs(t *testing.T) {
	for name, content := range map[string]string{
		"x.log":  `{"time": 1577836800, "op": "read", "bytes": 1, "method": "GET", "path": "/a"}`,
		"y.log":  "time,op,bytes,method,path\n1577836800,read,1,GET,/a\n",
		"z.json": `{"time": 1577836800, "nothing": 1}`,
		"z.csv":  "time,nothing\n1577836800,1\n",
	} {
		in, err := openInput(save(t, name, []byte(content)))
		if err != nil {
			t.Fatal(err)
		}
		if got := detect(in, &Options{}); got == AccessLog {
			t.Errorf("%s was taken for an access log", name)
		}
		if err := in.close(); err != nil {
			t.Error(err)
		}
	}
}

// A hundred lines of which none is of the format end the reading, and the first
// field that did not match is named (P07).
func TestFormatMismatchStops(t *testing.T) {
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, requestLine+"\n", i%10, "a")
	}
	const format = `nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent $request_time`
	got := readAll(t, Options{Log: accesslog.ChoiceOptions{Name: format}}, save(t, "x", []byte(log.String())))
	if !errors.Is(got.err, ErrNothingParses) || len(got.bad) != hopeless || !strings.Contains(got.err.Error(), `field request_time: got "\"-\" \"-\""`) {
		t.Errorf("%d bad lines, %v", len(got.bad), got.err)
	}
	got = readAll(t, Options{Log: accesslog.ChoiceOptions{Name: "no such"}}, save(t, "x", []byte(log.String())))
	if !errors.Is(got.err, ErrOption) || !errors.Is(got.err, accesslog.ErrFormat) {
		t.Error(got.err)
	}
}

// A line too long, whole or in its parts, costs itself only.
func TestLongLinesOfLogs(t *testing.T) {
	const cri = "2026-01-24T01:37:00.5Z stdout "
	part := cri + "P " + strings.Repeat("x", maxLine/2) + "\n"
	good := cri + "F " + fmt.Sprintf(requestLine, 1, "a") + "\n"
	got := readAll(t, Options{}, save(t, "x", []byte(good+part+part+part+cri+"F x\n"+good+cri+"F "+strings.Repeat("y", maxLine)+"\n"+good)))
	if !errors.Is(got.err, io.EOF) || len(got.rows) != 3 || len(got.bad) != 2 || got.bad[0].Field != "line" || got.bad[1].Field != "line" {
		t.Errorf("%d rows, %v, %v", len(got.rows), got.bad, got.err)
	}
}

func TestExplainLog(t *testing.T) {
	content := fmt.Sprintf(requestLine, 1, "a") + "\n\nx\n" + fmt.Sprintf(requestLine, 2, "b") + "\n"
	var says []string
	choice, err := ExplainLog(save(t, "x", []byte(content)), Options{AccessLog: testLogs}, 2, func(line int64, _ []byte, records []accesslog.Explanation) {
		for _, x := range records {
			says = append(says, fmt.Sprintf("%d: %d fields, row %v", line, len(x.Fields), x.Row != nil))
		}
	})
	if got := strings.Join(says, "; "); err != nil || choice.Format != "combined" || got != "1: 9 fields, row true; 3: 0 fields, row false" {
		t.Errorf("%s, %s, %v", choice, got, err)
	}
	for name, o := range map[string]Options{save(t, "y", []byte("x")): {}, t.TempDir() + "/none": {AccessLog: testLogs}} {
		if _, err := ExplainLog(name, o, 1, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
