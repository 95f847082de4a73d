package coder

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	chunkss3 "penstock/consumers/executor/coder/chunks/s3"
	"penstock/consumers/executor/coder/object"
	"penstock/infra/clock"
)

// lateService is an S3 service that carries out a PUT when a test wants it, though its client
// has gone.
type lateService struct {
	*httptest.Server
	mu      sync.Mutex
	changed sync.Cond
	blobs   map[string][]byte
	held    map[string][]byte // PUTs that have arrived and are not carried out
	gone    map[string]bool   // those of them whose clients have gone
	deletes map[string]int
	hold    func(key string) bool // tells whether a PUT is held
	first   int                   // how many are held before others are carried out
}

func newLateService(t *testing.T) *lateService {
	t.Helper()
	s := &lateService{
		blobs: make(map[string][]byte), held: make(map[string][]byte), gone: make(map[string]bool), deletes: make(map[string]int),
		hold: func(string) bool { return false },
	}
	s.changed.L = &s.mu
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *lateService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	switch content, found := s.blobs[key]; {
	case r.Method == http.MethodPut && s.hold(key):
		s.held[key] = body
		s.changed.Broadcast()
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
		s.gone[key] = true
	case r.Method == http.MethodPut:
		for len(s.held) < s.first {
			s.changed.Wait()
		}
		s.blobs[key] = body
		w.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodDelete:
		s.deletes[key]++
		delete(s.blobs, key)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Has("list-type"):
		s.list(w, r)
	case !found:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("ETag", `"e"`)
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(content))
	}
}

func (s *lateService) list(w http.ResponseWriter, r *http.Request) {
	type entry struct{ Key, LastModified, ETag, Size string }
	var all struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []entry
	}
	for key, b := range s.blobs {
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) && key > r.URL.Query().Get("start-after") {
			all.Contents = append(all.Contents, entry{key, "2026-11-30T12:00:00.000Z", `"e"`, strconv.Itoa(len(b))})
		}
	}
	slices.SortFunc(all.Contents, func(a, b entry) int { return strings.Compare(a.Key, b.Key) })
	_ = xml.NewEncoder(w).Encode(all)
}

// await waits until something holds of the service.
func (s *lateService) await(f func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !f() {
		s.changed.Wait()
	}
}

// commit carries out what is held.
func (s *lateService) commit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, b := range s.held {
		s.blobs[key] = b
	}
	s.hold = func(string) bool { return false }
}

// count is how many blobs of objects there are.
func (s *lateService) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.blobs {
		if strings.HasPrefix(key, "test/b/") {
			n++
		}
	}
	return n
}

// late sets a coder up over the service, on a clock that moves when the test says so.
func late(t *testing.T, s *lateService) (*bench, *clock.Manual) {
	t.Helper()
	store, err := chunkss3.New(chunkss3.Options{
		Name: "s3", Endpoint: s.URL, Region: "r", Bucket: "bucket", AccessKey: "who", SecretKey: "what", Late: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	m := clock.NewManual(time.Unix(1_800_000_000, 0))
	b := setup(t, object.Shared, 0, 0, func(o *Options) {
		o.Clock, o.Stores = m, []chunks.Store{store}
		o.TaskTimeout, o.Grace = time.Minute, time.Millisecond
	})
	return b, m
}

// move moves the clock in steps so small that all of them are nothing against an hour, until
// something holds.
func (b *bench) move(t *testing.T, m *clock.Manual, what string, f func(s Stats) bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		s, err := b.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f(s) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never %s: %+v", what, s)
		}
		m.Advance(5 * time.Millisecond)
		time.Sleep(time.Millisecond) // lets those whom it wakes get to work
	}
}

// TestAPutThatIsCarriedOutLate: what a service makes of a PUT that was broken off, after
// it was told to delete the blob, is deleted once more, over a restart, and counts until
// then.
func TestAPutThatIsCarriedOutLate(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			t.Parallel()
			s := newLateService(t)
			b, m := late(t, s)
			s.mu.Lock()
			s.hold = func(key string) bool { return strings.HasSuffix(key, ".2!") || strings.HasSuffix(key, ".3!") }
			s.first = 2
			s.mu.Unlock()
			b.code.set(4, 2)
			data := noise(1, 5000)
			// Two chunks land, which ends the write, and the others are broken off.
			b.put(t, "k", data)
			s.await(func() bool { return len(s.gone) == 2 })
			b.move(t, m, "settled", func(s Stats) bool { return s.Unintended == 0 && s.Deletes == s.Repeats })
			if got, _ := b.Stats(t.Context()); got.Repeats != 2 {
				t.Fatalf("before they come: %+v", got)
			}
			s.mu.Lock()
			for key := range s.held {
				if s.deletes[key] != 1 {
					t.Errorf("%s was deleted %d times", key, s.deletes[key])
				}
			}
			s.mu.Unlock()
			s.commit()
			if n := s.count(); n != 4 {
				t.Fatalf("%d blobs", n)
			}
			// A scrub knows what it looks at: they are no orphans.
			if r, err := b.Scrub(t.Context(), ScrubOptions{Orphans: true}, nil); err != nil || r.Orphans > 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if restart {
				b.stop()
				b.start(t)
			}
			m.Advance(59 * time.Minute)
			if got, err := b.Stats(t.Context()); err != nil || got.Repeats == 0 {
				t.Errorf("before the time: %+v, %v", got, err)
			}
			m.Advance(time.Minute)
			// What is no longer to be deleted is counted a moment later.
			b.move(t, m, "deleted once more", func(s Stats) bool { return s.Deletes == 0 && b.counts.get("deleted/again") > 1 })
			if n := s.count(); n != 2 {
				t.Errorf("%d blobs are left", n)
			}
			if got := b.counts.get("deleted/again"); got != 2 {
				t.Errorf("%d deleted again", got)
			}
			b.check(t, "k", data)
		})
	}
}

// TestAPutOfADeadProcess: what the process before was writing when it died is in doubt,
// though nobody has told of it.
func TestAPutOfADeadProcess(t *testing.T) {
	t.Parallel()
	s := newLateService(t)
	b, m := late(t, s)
	data := noise(1, 5000)
	b.code.set(1, 1)
	b.put(t, "k", data)
	b.move(t, m, "settled", func(s Stats) bool { return s.Unintended == 0 && s.Deletes == 0 })
	b.stop()
	b.start(t)
	if err := b.Delete(t.Context(), "bucket", "k", Conditions{}); err != nil {
		t.Fatal(err)
	}
	b.move(t, m, "deleted", func(s Stats) bool { return s.Deletes == s.Repeats })
	if got, _ := b.Stats(t.Context()); got.Repeats == 0 {
		t.Errorf("%+v", got)
	}
	m.Advance(time.Hour)
	b.move(t, m, "deleted once more", func(s Stats) bool { return s.Deletes == 0 })
	b.put(t, "k", data)
	if err := b.Delete(t.Context(), "bucket", "k", Conditions{}); err != nil {
		t.Fatal(err)
	}
	b.move(t, m, "deleted later", func(s Stats) bool { return s.Deletes == 0 || s.Repeats > 0 })
	if got, _ := b.Stats(t.Context()); got.Repeats > 0 {
		t.Errorf("in doubt for good: %+v", got)
	}
}

// TestDoubts: their memory is bounded, and none that is in doubt is taken for sure.
func TestDoubts(t *testing.T) {
	t.Parallel()
	d := newDoubts(time.Minute)
	now := time.Unix(1_800_000_000, 0)
	place := func(i int) []object.Place { return []object.Place{{Store: "s", Key: fmt.Sprint(i)}} }
	for i := range maxDoubts + 20_000 {
		d.add(now, fmt.Sprint(i))
		if len(d.ended) > 2*maxDoubts+1 {
			t.Fatalf("%d are remembered", len(d.ended))
		}
	}
	for _, i := range []int{0, maxDoubts, maxDoubts + 19_999} {
		if _, doubtful := d.took(now.Add(time.Minute), place(i)); len(doubtful) != 1 {
			t.Errorf("%d is sure", i)
		}
	}
	now = now.Add(2 * time.Minute)
	d.add(now, "1")
	for i, want := range []int{1, 0} { // what was deleted is forgotten
		if _, doubtful := d.took(now, place(1)); len(doubtful) != want {
			t.Errorf("time %d: %d doubtful", i, len(doubtful))
		}
	}
	if sure, _ := d.took(now, place(7)); len(sure) != 1 {
		t.Error("after its time it is in doubt")
	}
	none := newDoubts(0)
	none.add(now, "1")
	if sure, _ := none.took(now, place(1)); len(sure) != 1 || len(none.ended) != 0 {
		t.Error("a store that is sure is doubted")
	}
}
