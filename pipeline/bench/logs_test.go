package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"penstock/infra/shareddata"
	"penstock/producers/accesslog"
	"penstock/schemas/event"
)

// logTurn is how many lines a parser gets at a time.
const logTurn = 200_000

// reader is one way to read the lines of a log.
type reader struct {
	name  string
	lines [][]byte
	read  func(line []byte) error
	runs  []took
}

// BenchmarkLogLines is lines to columns by one goroutine: a log of the combined
// format by its scanner, and by a plain regular expression that makes strings and a
// time, as one would write it in an afternoon; then what we have of other formats.
// Each has its turn before any has its next. A core's second is one of processor
// time.
func BenchmarkLogLines(b *testing.B) {
	combined := combinedLines()
	readers := []*reader{
		parserOf(b, "combined", combined, accesslog.ChoiceOptions{Name: "combined"}),
		regexpOf("a plain regular expression", combined),
		parserOf(b, "as a log_format of NGINX", combined, accesslog.ChoiceOptions{
			Name: `nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`,
		}),
		parserOf(b, "as a LogFormat of Apache", combined, accesslog.ChoiceOptions{Name: `apache:%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`}),
	}
	dir := shareddata.Dir(b, "accesslog-quirks")
	for _, name := range []string{"haproxy-logs", "envoy-logs", "traefik_clf", "traefik_json", "caddy-logs", "aws-alb-logs"} {
		log, err := os.ReadFile(filepath.Join(dir, name+".log"))
		if err != nil {
			b.Fatal(err)
		}
		readers = append(readers, parserOf(b, strings.TrimSuffix(name, "-logs"), bytes.Split(bytes.TrimSpace(log), []byte("\n")), accesslog.ChoiceOptions{Sample: log}))
	}
	for range b.N {
		for range repeats {
			for _, r := range readers {
				r.runs = append(r.runs, r.turn(b, logTurn))
			}
		}
	}
	for i, r := range readers {
		m, best := median(r.runs, perCore)
		l := line{name: "log lines a core, " + r.name, figure: perCore(m), unit: "lines/s", note: fmt.Sprintf("best %s, %d bytes a line", figure(best, "lines/s"), r.bytes())}
		switch i {
		case 0:
			l.least = 1e6
			plain, _ := median(readers[1].runs, perCore)
			l.note += fmt.Sprintf("; %.1f times the plain regular expression", perCore(m)/perCore(plain))
			b.ReportMetric(perCore(m), "lines/s")
		case 1:
		default:
			l.name = "  " + r.name
		}
		results.add(l)
	}
}

func TestTheLogBenchmarkWorks(t *testing.T) {
	for _, r := range []*reader{
		parserOf(t, "combined", combinedLines(), accesslog.ChoiceOptions{Name: "combined"}), regexpOf("regexp", combinedLines()),
	} {
		if m := r.turn(t, 2000); m.work != 2000 || len(r.lines) != 1000 {
			t.Errorf("%s: %v of %d lines", r.name, m, len(r.lines))
		}
	}
}

// perCore is work a second of processor time.
func perCore(t took) float64 { return t.work / t.cpu.Seconds() }

// turn reads n lines.
func (r *reader) turn(t testing.TB, n int) took {
	return measure(n, func() {
		for i := range n {
			if err := r.read(r.lines[i%len(r.lines)]); err != nil {
				t.Error(err)
				return
			}
		}
	})
}

// bytes is the mean length of a line.
func (r *reader) bytes() int { return len(bytes.Join(r.lines, nil)) / len(r.lines) }

// parserOf reads the lines that a format's parser takes.
func parserOf(t testing.TB, name string, lines [][]byte, choose accesslog.ChoiceOptions) *reader {
	t.Helper()
	p, choice, err := accesslog.Open(choose, accesslog.Options{Key: []byte("a key of thirty-two bytes or more, for tests")})
	if err != nil {
		t.Fatal(err)
	}
	row := new(event.Request)
	r := &reader{name: name, read: func(line []byte) error { return p.Parse(line, row) }}
	u := accesslog.NewUnwrapper(choice.Wrapping)
	for _, line := range lines {
		if inner, whole, err := u.Unwrap(line); err == nil && whole && p.Parse(inner, row) == nil {
			r.lines = append(r.lines, bytes.Clone(inner))
		}
	}
	if len(r.lines) == 0 {
		t.Fatalf("%s: no line of %d can be read", name, len(lines))
	}
	return r
}

// regexpOf reads the combined format by one regular expression.
func regexpOf(name string, lines [][]byte) *reader {
	rule := regexp.MustCompile(`^(\S+) (\S+) (\S+) \[([^\]]+)\] "([^"]*)" (\d{3}|-) (\d+|-) "([^"]*)" "([^"]*)"$`)
	return &reader{name: name, lines: lines, read: func(line []byte) error {
		m := rule.FindSubmatch(line)
		if m == nil {
			return fmt.Errorf("no line of the combined format: %q", line)
		}
		_, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(m[4]))
		return err
	}}
}

// combinedLines are a thousand lines with many clients, sizes and seconds.
func combinedLines() (lines [][]byte) {
	for i := range 1000 {
		lines = append(lines, fmt.Appendf(nil, `192.0.2.%d - - [17/May/2015:10:05:%02d +0000] "GET /presentations-%d/logstash-monitorama-2013/images/kibana-search.png HTTP/1.1" 200 %d `+
			`"http://semicomplete.com/presentations/logstash-monitorama-2013/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"`,
			i%250, i%60, i%40, i*977))
	}
	return lines
}
