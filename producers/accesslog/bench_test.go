package accesslog

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
	"penstock/schemas/event"
)

// combinedLines are lines of a log with many clients, sizes and seconds.
func combinedLines() [][]byte {
	var lines [][]byte
	for i := range 1000 {
		lines = append(lines, fmt.Appendf(nil, `192.0.2.%d - - [17/May/2015:10:05:%02d +0000] "GET /presentations-%d/logstash-monitorama-2013/images/kibana-search.png HTTP/1.1" 200 %d `+
			`"http://semicomplete.com/presentations/logstash-monitorama-2013/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"`,
			i%250, i%60, i%40, i*977))
	}
	return lines
}

func benchmark(b *testing.B, p *Parser, lines [][]byte) {
	b.Helper()
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	b.SetBytes(int64(size / len(lines)))
	b.ReportAllocs()
	var r event.Request
	i := 0
	for b.Loop() {
		if err := p.Parse(lines[i%len(lines)], &r); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkParse parses lines to rows: the combined format by its scanner, the
// same as other formats write it down, and by a regular expression under the same
// mapping, beside a plain regular expression that makes strings.
func BenchmarkParse(b *testing.B) {
	lines := combinedLines()
	for name, format := range map[string]string{
		"combined": "combined",
		"nginx":    `nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`,
		"apache":   `apache:%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`,
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, open(b, format), lines) })
	}
	b.Run("regexp-mapped", func(b *testing.B) { benchmark(b, ofYAML(b, combinedByRegexp), lines) })
	b.Run("regexp", func(b *testing.B) {
		rule := regexp.MustCompile(`^(\S+) (\S+) (\S+) \[([^\]]+)\] "([^"]*)" (\d{3}|-) (\d+|-) "([^"]*)" "([^"]*)"$`)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			m := rule.FindSubmatch(lines[i%len(lines)])
			if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(m[4])); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "lines/s")
	})
}

// BenchmarkFormats parses the lines that we have of each format.
func BenchmarkFormats(b *testing.B) {
	dir := shareddata.Dir(b, "accesslog-quirks")
	for _, name := range []string{"aws-alb-logs", "caddy-logs", "envoy-logs", "haproxy-logs", "traefik_clf", "traefik_json"} {
		log, err := os.ReadFile(filepath.Join(dir, name+".log"))
		if err != nil {
			b.Fatal(err)
		}
		p, choice, err := Open(ChoiceOptions{Sample: log}, Options{Key: []byte("k")})
		if err != nil {
			b.Fatal(err)
		}
		var lines [][]byte
		u := NewUnwrapper(choice.Wrapping)
		var r event.Request
		for line := range bytes.SplitSeq(log, []byte{'\n'}) {
			if inner, whole, err := u.Unwrap(line); err == nil && whole && p.Parse(inner, &r) == nil {
				lines = append(lines, bytes.Clone(inner))
			}
		}
		b.Run(strings.TrimSuffix(name, "-logs"), func(b *testing.B) { benchmark(b, p, lines) })
	}
}
