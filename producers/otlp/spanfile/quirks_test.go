package spanfile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/shareddata"
	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

// What the sources of the recordings warn of, each with its number. Where a file is
// not among the recordings, one is made that has as many of it.

// Client and server share an id: a map by id would lose half of them. In each file
// there are as many halves as ids that stand twice, and no span is lost.
func TestZipkinIDsThatStandTwice(t *testing.T) {
	for name, want := range map[string]int64{"ascend.json": 2, "yelp.json": 3, "skew.json": 1, "envoy.json": 0, "messaging-kafka.json": 0} {
		b, err := os.ReadFile(filepath.Join(shareddata.Dir(t, "traces-zipkin"), name))
		if err != nil {
			t.Fatal(err)
		}
		var spans []struct{ ID string }
		if err := json.Unmarshal(b, &spans); err != nil {
			t.Fatal(err)
		}
		seen, twice := map[string]bool{}, int64(0)
		for _, s := range spans {
			if seen[s.ID] {
				twice++
			}
			seen[s.ID] = true
		}
		a := zipkinFile(t, name).stats.Account
		if twice != want || a[join.Half] != want || a.Sum() != int64(len(spans)) || a[join.Duplicate] != 0 {
			t.Errorf("%s: %d ids stand twice, %s of %d spans; expected %d halves", name, twice, &a, len(spans), want)
		}
	}
}

// bulk is as large and as odd as the largest trace that Zipkin's project was given:
// 1,041 spans over 301.7 s, 290 shared ids, 175 spans without a duration, 84 without
// a time, and most steps go back in time.
func bulk() (spans []map[string]any, shared, noDuration, noTime, back int) {
	const begin, length = 1_600_000_000_000_000, 301_700_000
	at := func(i int) int64 { return begin + length - int64(i)*length/750 }
	add := func(id, parent, kind, service string, at, took int64) map[string]any {
		s := map[string]any{
			"traceId": "2f", "id": id, "kind": kind, "timestamp": at, "duration": took,
			"localEndpoint": map[string]any{"serviceName": service},
		}
		if parent != "" {
			s["parentId"] = parent
		}
		spans = append(spans, s)
		return s
	}
	id := func(i int) string { return fmt.Sprintf("%016x", i+1) }
	for i := range 751 {
		add(id(i), "", "CLIENT", "app", at(i), 900)["remoteEndpoint"] = map[string]any{"serviceName": "service"}
	}
	for i := range 290 {
		add(id(i), "", "SERVER", "service", at(i)+100, 500)["shared"] = true
		shared++
	}
	for i := range 175 { // of both halves and of clients alone
		delete(spans[5*i], "duration")
		noDuration++
	}
	for i := range 84 { // of calls whose other half has one, and of clients alone
		delete(spans[9*i+1], "timestamp")
		noTime++
	}
	last := int64(0)
	for _, s := range spans {
		if at, ok := s["timestamp"].(int64); ok {
			if at < last {
				back++
			}
			last = at
		}
	}
	return spans, shared, noDuration, noTime, back
}

// A delay that nobody has measured is missing, and never 0; a span without a time has
// that of its other half; a pause of minutes in a trace is nobody's delay.
func TestZipkinLargestTrace(t *testing.T) {
	spans, shared, noDuration, noTime, back := bulk()
	if len(spans) != 1041 || shared != 290 || noDuration != 175 || noTime != 84 || back < 785 {
		t.Fatalf("%d spans, %d shared, %d without duration, %d without time, %d steps back", len(spans), shared, noDuration, noTime, back)
	}
	b, err := json.Marshal(spans)
	if err != nil {
		t.Fatal(err)
	}
	r := readText(t, Options{Format: Zipkin}, string(b))
	a := r.stats.Account
	timeless := int64(0)
	for i := shared; i < 751; i++ {
		if _, ok := spans[i]["timestamp"]; !ok {
			timeless++ // a client alone that says not when
		}
	}
	if r.err != nil || a.Sum() != 1041 || a[join.Half] != 290 || a[join.Called] != 751-timeless || a[join.Timeless] != timeless || r.stats.NoDuration != 175 {
		t.Fatalf("%v %s, %d without duration; %d should be timeless", r.err, &a, r.stats.NoDuration, timeless)
	}
	missing, last := 0, int64(0)
	for i := range r.rows {
		row := &r.rows[i]
		if row.Time < last {
			t.Fatalf("row %d goes back", i)
		}
		last = row.Time
		switch {
		case row.Service == event.NullInt:
			missing++
		case row.Service != 500 && row.Service != 900, row.Network != event.NullInt && row.Network != 400:
			t.Errorf("service %d, network %d", row.Service, row.Network)
		}
	}
	if missing == 0 || int64(missing) > r.stats.NoDuration {
		t.Errorf("%d calls have no delay, of %d spans without a duration", missing, r.stats.NoDuration)
	}
}

// One trace as OTLP and as Jaeger wrote it: ns in texts and µs in numbers, ids in
// hexadecimal. Told to take each span for a process that serves, both give the same
// calls at the same times; what is below 1 µs is Jaeger's own rounding.
func TestJaegerUnitsAndNumbers(t *testing.T) {
	calls := func(name string, replace ...string) []event.Request {
		b, err := os.ReadFile(filepath.Join(shareddata.Dir(t, "traces-jaeger"), name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if !strings.Contains(text, replace[0]) {
			t.Fatalf("%s: no %s", name, replace[0])
		}
		r := readText(t, Options{Rules: span.Rules{Server: []span.Source{{From: span.AttrName}}}}, strings.NewReplacer(replace...).Replace(text))
		if r.err != nil || len(r.rows) != 4 {
			t.Fatalf("%s: %v, %d calls, expected 4: %s", name, r.err, len(r.rows), r)
		}
		return r.rows
	}
	jaeger := calls("oltp2jaeger-multi-out.json", `"value": "internal"`, `"value": "server"`)
	otlp := calls("otlp2jaeger-multi-in-combined.json", `"kind": 1`, `"kind": 2`)
	near := func(a, b int64) bool { return a-b <= 1 && b-a <= 1 }
	for i := range otlp {
		o, j := &otlp[i], &jaeger[i]
		if !near(o.Time, j.Time) || !near(o.Service, j.Service) || o.Trace != j.Trace || o.ID != j.ID || o.ToServer != j.ToServer {
			t.Errorf("OTLP: %+v\nJaeger: %+v", *o, *j)
		}
	}
	if last := &otlp[3]; last.ToServer != "main" || last.Service != 176_321 || last.ID != "eff3153be6b1fb93" || last.Time != 1_711_138_246_940_000+176_321 {
		t.Errorf("%+v", *last)
	}
}

// A graph of dependencies, which has no times, is no spans, and says so.
func TestDependenciesAreNoSpans(t *testing.T) {
	for _, format := range []Format{Auto, Jaeger} {
		r := readText(t, Options{Format: format}, `[{"parent":"s1","child":"s2","callCount":12},{"parent":"s2","child":"s1","callCount":3}]`)
		if r.err == nil || len(r.rows) != 0 {
			t.Errorf("%q: %v, %d calls", format, r.err, len(r.rows))
		}
	}
}

// Spans of resources that are not there have no name, whatever hangs from them: deep
// and large attributes cost nothing but their bytes. Spans without a kind serve nobody
// until they are told to.
func TestOTLPWithoutResourceOrKind(t *testing.T) {
	dir := shareddata.Dir(t, "traces-otlp")
	for name, c := range map[string]struct {
		bytes int
		want  string
	}{
		"duckdb_traces_deep_nesting.jsonl": {10_000, "1 spans = 1 unnamed"},
		"duckdb_traces_large_attrs.jsonl":  {5_000, "1 spans = 1 unnamed"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(bytes.TrimSpace(b)) < c.bytes || bytes.Contains(b, []byte(`"kind"`)) || bytes.Contains(b, []byte("service.name")) {
			t.Fatalf("%s: %v, %d bytes", name, err, len(b))
		}
		read(Options{Entries: join.EntryAll}, filepath.Join(dir, name)).expect(t, c.want)
	}
	// Told who they are, they lack nothing but a time.
	known := Options{Rules: span.Rules{Component: []span.Source{{Value: "known"}}}, Entries: join.EntryAll}
	read(known, filepath.Join(dir, "duckdb_traces_large_attrs.jsonl")).expect(t, "1 spans = 1 timeless")
}

// nezhaSpan is a row of a minute, as it stands there.
type nezhaSpan struct {
	parent     string
	start, end int64
}

// nezhaRows reads a file of the recorded fault of a frontend, its header included.
func nezhaRows(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := recording.OpenPlain(filepath.Join(shareddata.Dir(t, "traces-nezha"), "ob_2022-08-22_"+name+".csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func nezhaSpans(t *testing.T, minute string) (spans map[string]nezhaSpan, order []int64) {
	t.Helper()
	spans = map[string]nezhaSpan{}
	for _, r := range nezhaRows(t, minute+"_trace")[1:] {
		var err error
		var s nezhaSpan
		s.parent = r[0] + r[2]
		for i, to := range map[int]*int64{5: &s.start, 6: &s.end} {
			if *to, err = strconv.ParseInt(r[i], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		spans[r[0]+r[1]] = s
		order = append(order, s.start)
	}
	return spans, order
}

// A file covers the minute before its name, its rows go back in time at more than a
// thousand places, a few children begin before their parents by their clocks, and many
// end after them: those were not waited for, and are never taken off.
func TestOnlineBoutiqueClocks(t *testing.T) {
	for _, c := range []struct {
		minute                             string
		from                               time.Time
		before, next, back, early, outlast int
	}{
		{"03_53", time.Date(2022, 8, 22, 3, 52, 19, 0, time.UTC), 0, 0, 1584, 18, 1804},
		{"03_54", time.Date(2022, 8, 22, 3, 53, 19, 0, time.UTC), 0, 23, 1556, 5, 1779},
		{"03_55", time.Date(2022, 8, 22, 3, 54, 19, 0, time.UTC), 71, 0, 1258, 2, 1192},
	} {
		t.Run(c.minute, func(t *testing.T) {
			spans, order := nezhaSpans(t, c.minute)
			before, next, back, early, outlast := 0, 0, 0, 0, 0
			for i, at := range order {
				if i > 0 && at < order[i-1] {
					back++
				}
				switch { // Traces go over from one minute to the next.
				case at < c.from.UnixNano():
					before++
				case at >= c.from.Add(time.Minute+time.Second).UnixNano():
					next++
				}
			}
			for _, s := range spans {
				if p, ok := spans[s.parent]; ok {
					if s.start < p.start {
						early++
					}
					if s.end > p.end {
						outlast++
					}
				}
			}
			if before != c.before || next != c.next || back != c.back || early != c.early || outlast != c.outlast {
				t.Errorf("%d spans of the minute before and %d of the next, %d steps back, %d children early, %d outlast their parents; expected %+v", before, next, back, early, outlast, c)
			}
			// Each of the early ones is flagged, and nothing is corrected.
			if m := readMinute(t, c.minute); m.stats.Skewed != int64(c.early) || m.stats.Negative != 0 {
				t.Errorf("%d calls between clocks that differ, %d negative", m.stats.Skewed, m.stats.Negative)
			}
		})
	}
}

// What a callee needed itself is never more than it took, and never below 0, though so
// many children outlast their parents. Where a service calls nobody it is all of it.
func TestOnlineBoutiqueOwnTime(t *testing.T) {
	name := filepath.Join(shareddata.Dir(t, "traces-nezha"), "ob_2022-08-22_03_55_trace.csv.gz")
	whole, own := read(Options{}, name), read(Options{Service: join.Own}, name)
	if len(whole.rows) != 4064 || len(own.rows) != 4064 {
		t.Fatalf("%d and %d calls", len(whole.rows), len(own.rows))
	}
	calls := map[string]bool{}
	for i := range whole.rows {
		calls[whole.rows[i].FromComponent] = true
	}
	less := 0
	for i := range whole.rows {
		w, o := &whole.rows[i], &own.rows[i]
		switch {
		case w.ID != o.ID || w.Network != o.Network:
			t.Fatalf("%+v\n%+v", *w, *o)
		case o.Service < 0 || o.Service > w.Service, !calls[w.ToComponent] && o.Service != w.Service:
			t.Errorf("%s took %d µs, itself %d", w.ToComponent, w.Service, o.Service)
		case o.Service < w.Service:
			less++
		}
	}
	if less != 289 {
		t.Errorf("%d callees waited for others, expected 289: most of checkout's and of recommendation's", less)
	}
}

// The delays of the mesh's proxies: cells without traffic are unknown and not 0, and
// the columns of the two files are not in one order.
func TestOnlineBoutiqueDelays(t *testing.T) {
	heads := map[string]string{}
	for name, want := range map[string]int{"source": 106, "destination": 113} {
		rows := nezhaRows(t, name+"_50")
		heads[name] = fmt.Sprint(rows[0][2:])
		empty := 0
		for _, row := range rows[1:] {
			if !strings.Contains(row[0], " m=+") {
				t.Fatalf("%q: expected a time of Go's with its monotonic part", row[0])
			}
			for _, cell := range row[2:] {
				if cell == "" {
					empty++
				}
			}
		}
		if empty != want {
			t.Errorf("%s: %d empty cells, expected %d", name, empty, want)
		}
	}
	if heads["source"] == heads["destination"] {
		t.Error("the columns are in one order")
	}
}
