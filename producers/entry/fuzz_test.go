package entry_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"penstock/producers/entry"
)

// FuzzEntry sends whatever a client can on one connection, in one piece or two.
// The strict backend has to see as many requests as there are answers of it,
// and reads each without a fault.
func FuzzEntry(f *testing.F) {
	for _, list := range [][]attack{framingAttacks(), chunkAttacks(), lineAttacks()} {
		for i, a := range list {
			if i%9 == 0 && len(a.raw) < 2000 { // each seed that waits for more costs its time-out
				f.Add([]byte(a.raw), uint16(i))
			}
		}
	}
	backend := newStrictBackend(f)
	p := run(f, []string{backend.url}, func(o *entry.Options) {
		o.Limits.HeaderTimeout, o.Limits.IdleTimeout = 30*time.Millisecond, 30*time.Millisecond
		o.Limits.BodyGrace, o.Limits.BodyRate = 20*time.Millisecond, 1<<20
	})
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		if len(data) > 20_000 {
			return
		}
		before := len(backend.since(0))
		w := dial(t, p)
		defer w.Close()
		sent := string(data) + "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		at := int(cut) % len(sent)
		go func() {
			_, _ = io.WriteString(w, sent[:at])
			_, _ = io.WriteString(w, sent[at:])
		}()
		answers := 0
		for {
			if _, err := w.r.Peek(1); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("the connection neither answers nor ends")
				}
				break
			}
			// A method that was asked with HEAD has no body to read; its answer is told
			// by the length that the backend gives it.
			resp, err := http.ReadResponse(w.r, &http.Request{Method: http.MethodHead}) //nolint:bodyclose // it ends with the connection
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode == http.StatusContinue {
				continue
			}
			answers += fromBackend(t, w, resp)
		}
		if seen := backend.since(before); len(seen) != answers {
			t.Fatalf("the backend got %d requests, the client %d answers: %v", len(seen), answers, seen)
		}
		if len(backend.faults) > 0 {
			t.Fatalf("the backend got %v", backend.faults)
		}
	})
}

// fromBackend reads the body of an answer and returns 1 if it is the backend's.
func fromBackend(t *testing.T, w *wire, resp *http.Response) int {
	own := resp.Header.Get("X-Content-Type-Options") != ""
	if resp.ContentLength > 0 && (own || resp.ContentLength != 5) {
		b := make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(w.r, b); err != nil && !own {
			t.Fatalf("an answer of %d bytes: %v", resp.ContentLength, err)
		}
		if own && !strings.HasPrefix(string(b), "penstock: ") {
			t.Fatalf("an answer %q", b)
		}
	}
	if own {
		return 0
	}
	return 1
}
