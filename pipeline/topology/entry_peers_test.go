package topology

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/telemetry"
	"penstock/producers/entry"
	"penstock/schemas/event"
)

// at says that all owners are at one site.
type at string

func (a at) Locate(string) (site string, version uint64, known bool) { return string(a), 3, true }
func (at) Learn(string, string, uint64)                              {}

// tally counts rows.
type tally struct{ atomic.Int64 }

func (n *tally) Publish(*event.Request) { n.Add(1) }

// disagree has two entry points, with these user keys and key files, believe that an
// owner's data is at the other, and asks the first. It returns the answer's status, and
// how many requests arrived at each and rows it made.
func disagree(t *testing.T, users, files [2]string) (status int, arrived, rows [2]int64) {
	names := [2]string{"a", "b"}
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer service.Close()
	var points [2]*httptest.Server
	var handlers [2]atomic.Pointer[entry.Entry]
	var calls [2]atomic.Int64
	for i := range points {
		points[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls[i].Add(1)
			handlers[i].Load().ServeHTTP(w, r)
		}))
		defer points[i].Close()
	}
	var tallies [2]tally
	for i, name := range names {
		cfg := parse(t, fmt.Sprintf("sites:\n"+
			"  - {name: a, lat: 1, lon: 2, capacity: 1MB/h, url: %q, servers: [%q]}\n"+
			"  - {name: b, lat: 1, lon: 2, capacity: 1MB/h, url: %q, servers: [%q]}\n"+
			"privacy: {user_key: %q}\nentry: {peer_key_file: %q}\n", points[0].URL, service.URL, points[1].URL, service.URL, users[i], files[i]))
		e := &Entry{Alone: Alone{Config: cfg, Logger: zerolog.Nop()}, Site: name}
		pools, o, err := e.options(&alone{Alone: &e.Alone, registry: telemetry.NewRegistry()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pools {
			defer p.Close()
		}
		o.Listen, o.Locations, o.Publisher = "", at(names[1-i]), &tallies[i]
		point, err := entry.New(o)
		if err != nil {
			t.Fatal(err)
		}
		handlers[i].Store(point)
	}
	resp, err := points[0].Client().Get(points[0].URL + "/u/ada/x")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		p.Close() // waits for the rows
	}
	for i := range points {
		arrived[i], rows[i] = calls[i].Load(), tallies[i].Load()
	}
	return resp.StatusCode, arrived, rows
}

// Whatever keys two entry points have, what they disagree about goes from one to the
// other once.
func TestEntryPointsThatDisagree(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, same, other := file("one", "a key among peers"), file("same", "a key among peers\n"), file("other", "some other key, also long")
	for name, test := range map[string]struct {
		users, files [2]string // of a and b
		status       int
		rows         [2]int64
	}{
		// Peers follow each other's word: a is told that it has the data, and serves it.
		"made of one user key":  {[2]string{"users", "users"}, [2]string{}, http.StatusOK, [2]int64{2, 0}},
		"one key of two files":  {[2]string{"users", "others"}, [2]string{one, same}, http.StatusOK, [2]int64{2, 0}},
		"made of two user keys": {[2]string{"users", "others"}, [2]string{}, http.StatusLoopDetected, [2]int64{1, 1}},
		"two keys of two files": {[2]string{"users", "users"}, [2]string{one, other}, http.StatusLoopDetected, [2]int64{1, 1}},
		"one has a file":        {[2]string{"users", "users"}, [2]string{one, ""}, http.StatusLoopDetected, [2]int64{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			status, arrived, rows := disagree(t, test.users, test.files)
			if status != test.status || arrived != [2]int64{1, 1} || rows != test.rows {
				t.Errorf("answered with %d after %v requests and %v rows, expected %d and %v", status, arrived, rows, test.status, test.rows)
			}
		})
	}
	for _, text := range []string{"", " \n", "15 bytes of key"} {
		if key, err := peerKey(file("bad", text), "users"); key != nil || !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "entry.peer_key_file") {
			t.Errorf("%q: key %q, %v", text, key, err)
		}
	}
}
