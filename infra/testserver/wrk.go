package testserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Load is what wrk sends. The zero value of a field is wrk's default.
type Load struct {
	URL string
	// Threads and Connections of it.
	Threads, Connections int
	// Duration is a whole number of seconds, at least 1.
	Duration time.Duration
	// Header lines, as Name: value.
	Header []string
	// Numbers, if not 0, has each request ask for another path: NUMBER in the URL's
	// is replaced by a random number below it.
	Numbers int
}

// Loaded is what wrk says. Its delays are of connections that wait for an answer
// before they send the next request: a stall of the server shows once a
// connection, not once a request that should have been sent.
type Loaded struct {
	Requests uint64
	Took     time.Duration
	P50, P99 time.Duration
	// Failed are errors of connections, requests without an answer after a minute, and
	// answers of 400 and above.
	Failed uint64
}

// PerSecond is the rate of requests.
func (l Loaded) PerSecond() float64 { return float64(l.Requests) / l.Took.Seconds() }

// wrkNumbers asks for paths with numbers.
const wrkNumbers = `local before, after
init = function()
	before, after = string.match(wrk.path, '^(.*)NUMBER(.*)$')
	math.randomseed(os.time())
end
request = function() return wrk.format(nil, before .. math.random(0, %d) .. after) end
`

// wrkScript prints the result as JSON. Times are in µs.
const wrkScript = `done = function(s, l, r)
	local e = s.errors
	io.write(string.format('\nresult {"requests":%d,"us":%d,"p50":%d,"p99":%d,"failed":%d}\n',
		s.requests, s.duration, l:percentile(50), l:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
`

// Wrk runs Debian's wrk and returns what it measured. Where it can't be had, or
// fails, the test fails.
func Wrk(t testing.TB, l Load) Loaded {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programPatience+l.Duration)
	defer cancel()
	path, err := debianProgram(ctx, "wrk", "wrk")
	if err != nil {
		t.Fatalf("wrk: %v", err)
	}
	script := filepath.Join(t.TempDir(), "done.lua")
	text := wrkScript
	if l.Numbers > 0 {
		text += fmt.Sprintf(wrkNumbers, l.Numbers-1)
	}
	if err := writeFile(script, text); err != nil {
		t.Fatalf("wrk: %v", err)
	}
	args := []string{
		"-s", script,
		"-t", strconv.Itoa(max(l.Threads, 1)), "-c", strconv.Itoa(max(l.Connections, 1)),
		"--timeout", "60s", // not 2 s: the machine may stand still, which is nobody's failure
		"-d", strconv.Itoa(max(int(math.Ceil(l.Duration.Seconds())), 1)) + "s",
	}
	for _, h := range l.Header {
		args = append(args, "-H", h)
	}
	out, err := exec.CommandContext(ctx, path, append(args, l.URL)...).CombinedOutput()
	if err != nil {
		t.Fatalf("wrk: %v: %s", err, out)
	}
	r, err := parseWrk(string(out))
	if err != nil {
		t.Fatalf("wrk: %v: %s", err, out)
	}
	return r
}

func parseWrk(out string) (Loaded, error) {
	_, rest, ok := strings.Cut(out, "\nresult ")
	var r struct{ Requests, US, P50, P99, Failed uint64 }
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&r); !ok || err != nil {
		return Loaded{}, fmt.Errorf("no result: %w", err)
	}
	us := func(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
	return Loaded{Requests: r.Requests, Took: us(r.US), P50: us(r.P50), P99: us(r.P99), Failed: r.Failed}, nil
}
