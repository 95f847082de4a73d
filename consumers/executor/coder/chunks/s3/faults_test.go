package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
)

const content = "0123456789abcdefghijklmnopqrstuvwxyz"

var written = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// served is a service that has content under every key, and what a test makes of it.
type served struct {
	*Store
	requests atomic.Int64
	counted  map[string]*atomic.Int64
}

// serve makes a store of a handler, which is told how many requests came before it. With
// nil it reads the content.
func serve(t *testing.T, h func(w http.ResponseWriter, r *http.Request, before int64) bool) *served {
	t.Helper()
	s := &served{counted: map[string]*atomic.Int64{"retry": {}, "resumed": {}, "throttled": {}, "upload-left": {}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h != nil && h(w, r, s.requests.Add(1)-1) {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"one"`)
		switch r.Method {
		case http.MethodGet:
			http.ServeContent(w, r, "", written, strings.NewReader(content))
		case http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(server.Close)
	s.Store = open(t, Options{
		Name: "faulty", Endpoint: server.URL, Region: "r", Bucket: "bucket", AccessKey: "who", SecretKey: "very-secret",
		Pause: time.Millisecond, Count: func(reason string, n int64) { s.counted[reason].Add(n) },
	})
	return s
}

func refuse(w http.ResponseWriter, status int, code string) bool {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>who and very-secret</Message></Error>", code)
	return true
}

// TestWhatPassesIsTriedAgain, as long as attempts last; what doesn't pass is told at
// once, without secrets.
func TestWhatPassesIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status   int
		code     string
		times    int64
		requests int64
		ok       bool
	}{
		{503, "SlowDown", 2, 3, true},
		{500, "InternalError", 3, 4, true},
		{500, "InternalError", 4, 4, false},
		{403, "AccessDenied", 1, 1, false},
		{404, "NoSuchBucket", 1, 1, false},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, before int64) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			return before < c.times && refuse(w, c.status, c.code)
		})
		for name, call := range map[string]func() error{
			"put": func() error { return s.Put(t.Context(), "k", strings.NewReader(content), int64(len(content))) },
			"get": func() error { _, err := s.Get(t.Context(), "k", 0, 5, io.Discard); return err },
			"delete": func() error {
				return s.Delete(t.Context(), "k")
			},
		} {
			s.requests.Store(0)
			err := call()
			if (err == nil) != c.ok || s.requests.Load() != c.requests {
				t.Errorf("%d %s, %s: %d requests, %v", c.status, c.code, name, s.requests.Load(), err)
			}
			if err != nil && strings.Contains(err.Error(), "very-secret") {
				t.Errorf("a secret is told: %v", err)
			}
			if errors.Is(err, chunks.ErrNotFound) {
				t.Errorf("%s: another failure is told as a blob that isn't there", name)
			}
		}
	}
}

// TestAReadingThatIsCutOffGoesOn where it was, and only with the same object.
func TestAReadingThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	var etag atomic.Value
	etag.Store(`"one"`)
	s := serve(t, func(w http.ResponseWriter, r *http.Request, before int64) bool {
		w.Header().Set("ETag", etag.Load().(string))
		if before%4 == 3 {
			http.ServeContent(w, r, "", written, strings.NewReader(content))
			return true
		}
		w.Header().Set("Last-Modified", written.Format(http.TimeFormat))
		w.Header().Set("Content-Length", "20")
		w.Header().Set("Content-Range", "bytes 0-19/36")
		w.WriteHeader(http.StatusPartialContent)
		from := 0
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		_, _ = io.WriteString(w, content[from:from+3])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	var b bytes.Buffer
	if n, err := s.Get(t.Context(), "k", 10, 20, &b); n != 20 || err != nil || b.String() != content[10:30] {
		t.Errorf("%d, %q, %v", n, b.String(), err)
	}
	if got := s.counted["resumed"].Load(); got != 3 {
		t.Errorf("%d resumed", got)
	}
}

func TestAnotherObjectDoesNotGoOn(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request, before int64) bool {
		if before > 0 {
			w.Header().Set("ETag", `"two"`)
			http.ServeContent(w, r, "", written, strings.NewReader(strings.ToUpper(content)))
			return true
		}
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Last-Modified", written.Format(http.TimeFormat))
		w.Header().Set("Content-Length", "36")
		_, _ = io.WriteString(w, content[:5])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	var b bytes.Buffer
	if n, err := s.Get(t.Context(), "k", 0, 36, &b); err == nil || n > 5 || !strings.HasPrefix(content, b.String()) {
		t.Errorf("%d, %q, %v", n, b.String(), err)
	}
}

// TestAServiceWithoutRanges is found out, and no wrong byte is handed on.
func TestAServiceWithoutRanges(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) bool {
		r.Header.Del("Range")
		return false
	})
	var b bytes.Buffer
	if n, err := s.Get(t.Context(), "k", 0, 5, &b); n != 5 || err != nil || b.String() != content[:5] {
		t.Errorf("from the beginning: %d, %v", n, err)
	}
	if n, err := s.Get(t.Context(), "k", 3, 5, io.Discard); n != 0 || !errors.Is(err, errRange) {
		t.Errorf("%d, %v", n, err)
	}
}

// TestAContextEndsItsRequest: the service sees that the connection has ended, and the
// call returns although nothing was answered.
func TestAContextEndsItsRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call  func(ctx context.Context, s *served) error
		reads bool // the service reads what it is sent
	}{
		"get":    {func(ctx context.Context, s *served) error { _, err := s.Get(ctx, "k", 0, 5, io.Discard); return err }, true},
		"list":   {func(ctx context.Context, s *served) error { _, err := s.List(ctx, "", "", 5); return err }, true},
		"delete": {func(ctx context.Context, s *served) error { return s.Delete(ctx, "k") }, true},
		"put":    {func(ctx context.Context, s *served) error { return s.Put(ctx, "k", chunkstest.Noise(1, 4<<20), 4<<20) }, true},
		"put that isn't read": {func(ctx context.Context, s *served) error {
			return s.Put(ctx, "k", chunkstest.Noise(1, 8<<20), 8<<20)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, gone := make(chan struct{}), make(chan struct{})
			s := serve(t, func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
				if test.reads {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				close(arrived)
				if !test.reads { // Go's server looks at the connection when the body has been read
					_, _ = io.Copy(io.Discard, r.Body)
				}
				<-r.Context().Done()
				close(gone)
				return true
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- test.call(ctx, s) }()
			<-arrived
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			<-gone
		})
	}
}

func TestCheckAndOptions(t *testing.T) {
	t.Parallel()
	o := options(t)
	s := open(t, o)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	o.Bucket += "-not"
	if err := open(t, o).Check(t.Context()); err == nil {
		t.Error("a bucket that isn't there was found")
	}
	for name, change := range map[string]func(*Options){
		"name":     func(o *Options) { o.Name = "" },
		"endpoint": func(o *Options) { o.Endpoint = "http://me:very-secret@host" },
		"bucket":   func(o *Options) { o.Bucket = "" },
		"keys":     func(o *Options) { o.SecretKey = "" },
		"prefix":   func(o *Options) { o.Prefix = "a/../b" },
		"long":     func(o *Options) { o.Prefix = strings.Repeat("p", maxPrefix+1) },
		"part":     func(o *Options) { o.PartSize = 1 << 20 },
		"attempts": func(o *Options) { o.Attempts = -1 },
	} {
		o := options(t)
		change(&o)
		if _, err := New(o); !errors.Is(err, ErrOption) || strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
