package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/shareddata"
	"penstock/schemas/event"
)

// text is a row with what is known of it.
func text(r *event.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", time.UnixMicro(r.Time).UTC().Format(time.RFC3339Nano), r.Op)
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	add("owner", r.Owner)
	if r.Status != event.NullStatus {
		add("status", fmt.Sprint(r.Status))
	}
	add("bytes", fmt.Sprint(r.Bytes))
	if r.Wait != event.NullInt {
		add("wait", fmt.Sprint(r.Wait))
	}
	if r.Service != event.NullInt {
		add("service", fmt.Sprint(r.Service))
	}
	if r.Network != event.NullInt {
		add("network", fmt.Sprint(r.Network))
	}
	add("to", r.ToComponent)
	add("server", r.ToServer)
	add("class", r.Class)
	add("id", r.ID)
	if r.Trace != [16]byte{} {
		add("trace", fmt.Sprintf("%x", r.Trace))
	}
	return b.String()
}

// logFile is a log as a test reads it.
type logFile struct {
	choice Choice
	rows   []event.Request
	lines  []string // of the rows, as they were given to the parser
	faults []*LineError
}

// malformed counts the faults by field.
func (l *logFile) malformed() string {
	by := map[string]int{}
	for _, f := range l.faults {
		by[f.Field]++
	}
	var out []string
	for _, field := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%s %d", field, by[field]))
	}
	return strings.Join(out, ", ")
}

// readLog reads a whole log, plain or gz.
func readLog(t testing.TB, path, format string) *logFile {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return parseLog(t, b, ChoiceOptions{Name: format, Sample: b[:min(len(b), 64<<10)]})
}

func parseLog(t testing.TB, log []byte, c ChoiceOptions) *logFile {
	t.Helper()
	lines, choice, err := OpenLines(c, Options{Key: []byte("key of the tests"), Geo: atlas{}})
	if err != nil {
		t.Fatal(err)
	}
	out := &logFile{choice: choice}
	for line := range bytes.SplitSeq(log, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		for next := func(r *event.Request) error { return lines.Parse(line, r) }; ; next = lines.Next {
			var r event.Request
			err := next(&r)
			var fault *LineError
			switch {
			case errors.Is(err, io.EOF):
			case errors.Is(err, ErrHeader), errors.Is(err, ErrPart):
				continue
			case errors.As(err, &fault):
				out.faults = append(out.faults, fault)
				continue
			case err != nil:
				t.Fatal(err)
			default:
				if err := r.Check(); err != nil {
					t.Errorf("%s: %v", line, err)
				}
				out.rows, out.lines = append(out.rows, r), append(out.lines, string(lines.Record()))
				continue
			}
			break
		}
	}
	for range lines.Rest() {
		out.faults = append(out.faults, &LineError{Field: "line"})
	}
	return out
}

// TestEveryFile is the table of format, lines, counted and malformed by reason
// over all logs that we have (P07, P09, P18).
func TestEveryFile(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-26s %-9s %6s %8s %12s  %s\n", "file", "format", "lines", "counted", "bad-request", "malformed")
	for _, want := range []struct {
		file, format            string
		counted, bad, malformed int
		reasons                 string
	}{
		{"accesslog-quirks/apache2-logs.log", "combined", 4, 0, 5, "bytes 1, host 2, login 2"},
		{"accesslog-quirks/apache2-malformed.log", "combined", 11, 11, 0, ""},
		{"accesslog-quirks/aws-alb-logs.log", "alb", 14, 0, 0, ""},
		{"accesslog-quirks/caddy-logs.log", "caddy", 10, 0, 1, "logger 1"},
		{"accesslog-quirks/envoy-logs.log", "envoy", 10, 0, 0, ""},
		{"accesslog-quirks/haproxy-logs.log", "haproxy", 5, 3, 0, ""},
		{"accesslog-quirks/nginx-http-malformed.log", "combined", 12, 12, 0, ""},
		{"accesslog-quirks/nginx_http-logs.log", "combined", 4, 0, 5, "login 5"},
		{"accesslog-quirks/traefik_clf.log", "traefik", 7, 0, 0, ""},
		{"accesslog-quirks/traefik_json.log", "traefik", 6, 0, 1, "login 1"},
		{"apache-logs/access.log.gz", "combined", 9999, 0, 1, "agent 1"},
		{"nasa-19950801/nasa_19950801.tsv.gz", "table", 30969, 0, 0, ""},
	} {
		folder, name := filepath.Split(want.file)
		got := readLog(t, filepath.Join(shareddata.Dir(t, filepath.Clean(folder)), name), "")
		bad := 0
		for i := range got.rows {
			if got.rows[i].Class == ClassBadRequest {
				bad++
			}
		}
		fmt.Fprintf(&table, "%-26s %-9s %6d %8d %12d  %s\n", name, got.choice.Format, len(got.rows)+len(got.faults), len(got.rows), bad, got.malformed())
		if got.choice.Format != want.format || len(got.rows) != want.counted || bad != want.bad || len(got.faults) != want.malformed || got.malformed() != want.reasons {
			t.Errorf("%s: %s; counted %d, bad requests %d, malformed %d: %s; expected %+v", want.file, got.choice, len(got.rows), bad, len(got.faults), got.malformed(), want)
		}
	}
	t.Log(table.String())
}

// expectRows compares rows of a log with what each must be: of the line's
// number, counted from 1.
func expectRows(t *testing.T, got *logFile, want map[int]string) {
	t.Helper()
	for n, w := range want {
		if n > len(got.rows) {
			t.Errorf("row %d is not there", n)
		} else if g := text(&got.rows[n-1]); g != w {
			t.Errorf("row %d\n got %s\nwant %s", n, g, w)
		}
	}
}

func quirks(t *testing.T, name, format string) *logFile {
	t.Helper()
	return readLog(t, filepath.Join(shareddata.Dir(t, "accesslog-quirks"), name), format)
}

// TestTraefikJSON: a line of text between objects; the server's URL an object in
// old lines and a string in new ones; times in nanoseconds; of a chain of routers
// the leaf; a request that no router took; several clients.
func TestTraefikJSON(t *testing.T) {
	got := quirks(t, "traefik_json.log", "")
	expectRows(t, got, map[int]string{
		1: "2021-12-08T14:02:43.588139Z read owner=594VAEoi.save status=200 bytes=357 service=325 network=32 to=test@docker server=172.17.0.3:80 class=test@docker",
		3: "2026-01-08T14:19:15.982171Z read status=200 bytes=364 service=1935 network=66 to=whoami@file server=whoami:80 class=leaf@file",
		4: "2026-01-08T14:20:00.0015Z write owner=api status=200 bytes=364 service=1450 network=50 to=api@file server=api:8080 class=child@file",
		5: "2026-01-14T09:45:33.759024Z read status=404 bytes=19 service=10",
		6: "2025-11-28T09:21:55.648117Z read owner=_matrix status=204 bytes=0 service=823 network=1515 to=matrix-synapse-client-api@docker " +
			"server=172.16.16.25:8008 class=matrix-synapse-public-client-api@docker",
	})
	// Without ServiceAddr the URL says the server, whichever form it has.
	p := newTestParser(t, named(t, "traefik"), 1)
	for _, i := range []int{0, 2} {
		line := strings.ReplaceAll(got.lines[i], `"ServiceAddr"`, `"Other"`)
		if want := map[int]string{0: "172.17.0.3:80", 2: "whoami:80"}[i]; !strings.Contains(textOf(t, p, line), "server="+want) {
			t.Errorf("%s\nno server %s", textOf(t, p, line), want)
		}
	}
	if a, b := got.rows[5].User, parseOne(t, p, strings.Replace(got.lines[5], "192.168.1.100,10.0.0.50", "192.168.1.100", 1)).User; a != b {
		t.Error("of several clients the first is the user")
	}
}

// TestTraefikCLF: "-" for status and size, "ms" behind the time, blank lines, a
// chain of routers, protocol HTTP/2; the time is the request's start.
func TestTraefikCLF(t *testing.T) {
	expectRows(t, quirks(t, "traefik_clf.log", ""), map[int]string{
		1: "2021-12-08T09:16:05Z read owner=scripts status=200 bytes=414 service=0 server=172.17.0.3:80 class=test@docker",
		5: "2022-09-28T13:38:04Z read owner=mobileadmin bytes=0 service=0",
		6: "2024-11-24T13:38:04.042Z read owner=birthday status=200 bytes=352 service=42000 server=172.17.0.3:80 class=leaf@docker",
		7: "2024-11-24T13:40:15.025Z read owner=api status=200 bytes=450 service=25000 server=172.17.0.4:80 class=leaf@docker",
	})
}

// TestCaddy: seconds since 1970 with a fraction, a duration of microseconds in
// seconds, status 0, a line of another logger.
func TestCaddy(t *testing.T) {
	got := quirks(t, "caddy-logs.log", "")
	expectRows(t, got, map[int]string{
		1:  "2023-09-04T15:19:51.756499Z read status=0 bytes=0 service=3",
		8:  "2024-03-29T19:49:58.039132Z read status=401 bytes=0 service=782670",
		10: "2024-03-29T19:51:04.947103Z read status=200 bytes=18630 service=794682",
	})
	if got.rows[0].User == got.rows[3].User {
		t.Error("client_ip is the user, not the proxy's remote_ip")
	}
	// An error that tells of a request again is no second request.
	p := newTestParser(t, named(t, "caddy"), 1)
	again := strings.Replace(got.lines[0], "http.log.access", "http.log.error", 1)
	if _, err := tryParse(p, again); err == nil || err.Field != "logger" {
		t.Errorf("an error log's line: %v", err)
	}
}

// TestEnvoy: a container's prefix before JSON and text in one file; no upstream;
// IPv6 in brackets with a port and without; the start differs from the prefix's
// time; milliseconds.
func TestEnvoy(t *testing.T) {
	got := quirks(t, "envoy-logs.log", "")
	if got.choice.Wrapping != WrapCRI {
		t.Errorf("prefix: %s", got.choice)
	}
	const route = "httproute/app/proxy6-example-com/rule/0"
	expectRows(t, got, map[int]string{
		2: "2025-12-31T17:22:04.951Z read status=301 bytes=0 service=0 class=httproute/app/http-to-https-filter-redirect/rule/0/match/0/* id=a9864e02-c6f5-4375-a27d-3ffd7f312811",
		4: "2016-04-15T20:17:00.536Z write owner=api status=204 bytes=154 service=100000 network=126000 server=10.0.2.1:80 id=cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2",
		5: "2026-01-24T01:34:36.793Z read owner=test status=200 bytes=256 service=25000 network=25000 server=[fd00:1234:5678::e18]:8080 id=test-request-id",
		8: "2026-01-24T01:36:00.02Z write owner=api status=201 bytes=1024 service=20000 to=" + route + " server=[fd00:1234:5678::e18]:8080 class=" + route +
			"/match/0/proxy6_example_com id=multi-ip-v6-test-id",
	})
	// One client in brackets, without, as the first of two, in JSON and text.
	for _, n := range []int{6, 8, 10} {
		if got.rows[n-1].User != got.rows[4].User {
			t.Errorf("row %d is another user than row 5", n)
		}
	}
	if got.rows[6].User != got.rows[8].User || got.rows[6].User == got.rows[4].User {
		t.Error("IPv4 clients of JSON and text differ")
	}
	// Without X-Forwarded-For the peer is the client, less its port.
	p := newTestParser(t, named(t, "envoy"), 1)
	line := strings.Replace(got.lines[5], `"x-forwarded-for":"fd00:1234:5678::5a24"`, `"x-forwarded-for":null`, 1)
	direct := parseOne(t, p, line)
	if direct.User != parseOne(t, p, got.lines[5]).User {
		t.Error("[address]:port is another user than the address")
	}
}

// TestALB: quoted fields, three times, −1 where it did not come to that, columns
// that were added later, traces with a dash and without.
func TestALB(t *testing.T) {
	expectRows(t, quirks(t, "aws-alb-logs.log", ""), map[int]string{
		2: "2023-04-26T12:23:00.186641Z read owner=robots.txt status=200 bytes=57 wait=86000 service=48000 network=37000 to=my-targets server=10.0.0.1:80 " +
			"id=Root=1-58337281-1d84f3d73c47ec4e58577259 trace=583372811d84f3d73c47ec4e58577259",
		4: "2023-04-26T19:53:46.679895Z read owner=%%32%65%%32%65 status=404 bytes=371 id=Root=1-6449814a-01d4cd3e280010e00ac46641 trace=6449814a01d4cd3e280010e00ac46641",
		10: "2018-07-02T22:23:00.186641Z read status=200 bytes=262 wait=0 service=2000 network=0 to=my-targets server=10.0.0.66:9000 " +
			"id=Root=1-5833732772bd00b0343d75b906739c42 trace=5833732772bd00b0343d75b906739c42",
	})
}

// TestHAProxyQuirks: timers, start and duration, an SSL frontend, and connections
// that failed before there was a request.
func TestHAProxyQuirks(t *testing.T) {
	got := quirks(t, "haproxy-logs.log", "")
	expectRows(t, got, map[int]string{
		1: "2015-01-14T12:48:57.3Z read owner=xxx status=200 bytes=739 wait=0 service=3000 network=170000 to=xx_server_https server=xxx_node_8002",
		2: "2021-03-12T06:56:29.352Z read status=200 bytes=20602 wait=0 service=1263000 network=1000 to=maskurl server=dns",
		3: "2025-02-28T02:43:10.123Z read bytes=0 class=bad-request",
	})
	if got.rows[2].User == "" || got.rows[2].User != got.rows[3].User {
		t.Error("a failed connection has its client")
	}
}

// TestApacheAndNGINXQuirks: what combined leaves is there with the format of its
// own: a virtual host in front, a line without referer and agent.
func TestApacheAndNGINXQuirks(t *testing.T) {
	vhost := quirks(t, "nginx_http-logs.log", "vhost")
	expectRows(t, vhost, map[int]string{
		1: "2020-06-08T08:04:43Z read owner=solr status=500 bytes=803 to=www.crowdsec.net",
		3: "2020-06-08T08:04:43Z read owner=test status=301 bytes=0 to=www.crowdsec11.net",
	})
	common := quirks(t, "apache2-logs.log", "common")
	expectRows(t, common, map[int]string{1: "2021-03-05T08:01:38Z read owner=test status=200 bytes=1513"})
	// Zones, and what is kept of a request that is none.
	expectRows(t, quirks(t, "apache2-malformed.log", ""), map[int]string{1: "2023-10-16T18:57:49Z read status=400 bytes=226 class=bad-request"})
	expectRows(t, quirks(t, "nginx-http-malformed.log", ""), map[int]string{1: "2023-07-29T17:26:06Z read status=400 bytes=157 class=bad-request"})
}

// TestApacheLogs: sums of a real site's log as its SOURCE has them.
func TestApacheLogs(t *testing.T) {
	got := readLog(t, filepath.Join(shareddata.Dir(t, "apache-logs"), "access.log.gz"), "")
	var sum int64
	users, partial, wrongRange, backwards := map[string]bool{}, 0, 0, 0
	first, last := got.rows[0].Time, got.rows[0].Time
	for i := range got.rows {
		r := &got.rows[i]
		sum += r.Bytes
		users[r.User] = true
		switch r.Status {
		case 206:
			partial++
		case 416:
			wrongRange++
		}
		if i > 0 && r.Time < got.rows[i-1].Time {
			backwards++
		}
		first, last = min(first, r.Time), max(last, r.Time)
	}
	at := func(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
	if sum != 2_747_282_505 || len(users) != 1753 || partial != 45 || wrongRange != 2 || backwards != 4915 ||
		at(first) != "2015-05-17T10:05:00Z" || at(last) != "2015-05-20T21:05:59Z" {
		t.Errorf("bytes %d, hosts %d, 206 %d, 416 %d, backwards %d, %s to %s", sum, len(users), partial, wrongRange, backwards, at(first), at(last))
	}
}

// TestNASA: tabs that end a line are fields; 304 rows have 0 bytes, as the file
// says, which is not missing.
func TestNASA(t *testing.T) {
	got := readLog(t, filepath.Join(shareddata.Dir(t, "nasa-19950801"), "nasa_19950801.tsv.gz"), "")
	var sum int64
	users := map[string]bool{}
	for i := range got.rows {
		sum += got.rows[i].Bytes
		users[got.rows[i].User] = true
		if i > 0 && got.rows[i].Time < got.rows[i-1].Time {
			t.Fatal("not in order")
		}
		if got.rows[i].Status == 304 && got.rows[i].Bytes != 0 {
			t.Fatal("a 304 with bytes")
		}
	}
	first, last := text(&got.rows[0]), time.UnixMicro(got.rows[len(got.rows)-1].Time).UTC().Format(time.RFC3339)
	if sum != 482_000_467 || len(users) != 2365 || first != "1995-08-01T06:00:00Z read owner=images status=200 bytes=1713" || last != "1995-08-01T18:52:01Z" {
		t.Errorf("bytes %d, hosts %d, %s to %s", sum, len(users), first, last)
	}
}

// tryParse returns the row of a line, or why there is none.
func tryParse(p *Parser, line string) (event.Request, *LineError) {
	var r event.Request
	var fault *LineError
	errors.As(p.Parse([]byte(line), &r), &fault)
	return r, fault
}

func parseOne(t testing.TB, p *Parser, line string) event.Request {
	t.Helper()
	r, fault := tryParse(p, line)
	if fault != nil {
		t.Fatalf("%s\n%v", line, fault)
	}
	return r
}

// textOf is the row of a line, or the fault, as text.
func textOf(t testing.TB, p *Parser, line string) string {
	t.Helper()
	r, fault := tryParse(p, line)
	if fault != nil {
		return "malformed " + fault.Error()
	}
	return text(&r)
}
