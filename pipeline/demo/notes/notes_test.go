package notes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (*dir.Store, http.Handler) {
	t.Helper()
	s, err := dir.Open(t.TempDir(), dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, New(Options{Site: "east", Store: s, Logger: zerolog.Nop()}).Handler()
}

func ask(t *testing.T, h http.Handler, method, path, body string) (w *httptest.ResponseRecorder, answer string) {
	t.Helper()
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w, w.Body.String()
}

func TestNotesAreWrittenAndRead(t *testing.T) {
	s, h := open(t)
	const owner = "ann/ä"
	if err := Create(t.Context(), s, owner); err != nil {
		t.Fatal(err)
	}
	path := "/u/ann%2F%C3%A4/notes"
	for i := 1; i <= 12; i++ {
		r, body := ask(t, h, "POST", path, fmt.Sprintf(`{"id":"n%d","by":"ben","text":"hello"}`, i))
		if want := fmt.Sprintf(`{"id":"n%d","number":%d,"site":"east"}`, i, i); r.Code != http.StatusCreated || body != want {
			t.Fatalf("%d %s, expected %s", r.Code, body, want)
		}
		if timing := r.Header().Get("Server-Timing"); !strings.HasPrefix(timing, "app;dur=") {
			t.Errorf("Server-Timing %q", timing)
		}
	}
	for query, want := range map[string]int{"": 10, "?last=3": 3, "?last=0": 0, "?last=1000": 12} {
		r, body := ask(t, h, "GET", path+query, "")
		var p Page
		if err := json.Unmarshal([]byte(body), &p); err != nil || r.Code != http.StatusOK {
			t.Fatalf("%d %s: %v", r.Code, body, err)
		}
		if p.Owner != owner || p.Site != "east" || p.Count != 12 || len(p.Notes) != want {
			t.Errorf("%s: %+v", query, p)
		}
		if want > 0 && p.Notes[want-1] != (Note{"n12", "ben", "hello"}) {
			t.Errorf("%s: last is %+v", query, p.Notes[want-1])
		}
	}
	if r, _ := ask(t, h, "GET", "/health", ""); r.Code != http.StatusOK {
		t.Errorf("health: %d", r.Code)
	}
}

// TestCopiesThatMayNotBeWrittenTo are answered with where the data is.
func TestCopiesThatMayNotBeWrittenTo(t *testing.T) {
	s, h := open(t)
	if err := Create(t.Context(), s, "ann"); err != nil {
		t.Fatal(err)
	}
	from := objectstore.Mark{}
	for _, c := range []struct {
		mark     objectstore.Mark
		status   int
		site, at string
	}{
		{objectstore.Mark{State: objectstore.Retired, Version: 7, Site: "west"}, 421, "west", "7"},
		{objectstore.Mark{State: objectstore.Incoming, Version: 8, By: "mover"}, 421, "east", "8"},
		{objectstore.Mark{State: objectstore.Live, Version: 8}, 200, "", ""},
	} {
		if err := s.Mark(t.Context(), "ann", from, c.mark); err != nil {
			t.Fatal(err)
		}
		from = c.mark
		for method, ok := range map[string]int{"GET": 200, "POST": 201} {
			want := c.status
			if want == 200 {
				want = ok
			}
			r, body := ask(t, h, method, "/u/ann/notes", `{"id":"x"}`)
			if r.Code != want || r.Header().Get("Penstock-Site") != c.site || r.Header().Get("Penstock-Version") != c.at {
				t.Errorf("%s of a copy that is %s: %d %v %s", method, c.mark, r.Code, r.Header(), body)
			}
		}
	}
	if list, err := All(t.Context(), s, "ann"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v: only one write was acknowledged", list, err)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	s, h := open(t)
	if err := Create(t.Context(), s, "ann"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/u/nobody/notes", "", 404},
		{"POST", "/u/nobody/notes", `{"id":"x"}`, 404},
		{"POST", "/u/ann/notes", `{"id":""}`, 400},
		{"POST", "/u/ann/notes", `nonsense`, 400},
		{"POST", "/u/ann/notes", `{"id":"x","text":"` + strings.Repeat("x", maxNote) + `"}`, 400},
		{"POST", "/u/" + strings.Repeat("x", 1025) + "/notes", `{"id":"x"}`, 400},
		{"GET", "/u/ann/notes?last=x", "", 400},
		{"GET", "/u/ann/notes?last=-1", "", 400},
		{"GET", "/u/ann/notes?last=1001", "", 400},
		{"GET", "/u/ann/letters", "", 404},
		{"PUT", "/u/ann/notes", "", 405},
	} {
		if r, body := ask(t, h, c.method, c.path, c.body); r.Code != c.status {
			t.Errorf("%s %.40s: %d %.80s, expected %d", c.method, c.path, r.Code, body, c.status)
		}
	}
	if m, err := s.Stat(t.Context(), "nobody"); err != nil || m.State != objectstore.Absent {
		t.Errorf("a refused request made a notebook: %v, %v", m, err)
	}
}

func TestAStoreThatFailsIsNotAcknowledged(t *testing.T) {
	s, _ := open(t)
	if err := Create(t.Context(), s, "ann"); err != nil {
		t.Fatal(err)
	}
	h := New(Options{Site: "east", Store: &brokenStore{s}, Logger: zerolog.Nop()}).Handler()
	if r, _ := ask(t, h, "POST", "/u/ann/notes", `{"id":"x"}`); r.Code != 500 {
		t.Errorf("%d", r.Code)
	}
}

type brokenStore struct{ *dir.Store }

func (*brokenStore) AppendAll(context.Context, string, string, []objectstore.Record) (int, error) {
	return 0, os.ErrPermission
}

// TestWritersAtOnce each get a number of their own.
func TestWritersAtOnce(t *testing.T) {
	s, _ := open(t)
	if err := Create(t.Context(), s, "ann"); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	numbers := map[uint64]bool{}
	for w := range 8 {
		running.Go(func() {
			for i := range 5 {
				n, err := Write(t.Context(), s, "ann", Note{ID: fmt.Sprint(w, " ", i)})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				numbers[n] = true
				mu.Unlock()
			}
		})
	}
	running.Wait()
	list, err := All(t.Context(), s, "ann")
	if err != nil || len(list) != 40 || len(numbers) != 40 {
		t.Errorf("%d notes, %d numbers: %v", len(list), len(numbers), err)
	}
}

func TestRunServesUntilTheEnd(t *testing.T) {
	s, _ := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- New(Options{Site: "east", Store: s, Logger: zerolog.Nop()}).Run(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{}}
	r, err := client.Get("http://" + l.Addr().String() + "/health")
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", r, err)
	}
	_ = r.Body.Close()
	client.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := New(Options{Site: "east", Store: s, Logger: zerolog.Nop()}).Run(t.Context(), l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a closed listener: %v", err)
	}
}
