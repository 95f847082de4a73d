package middleware

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"penstock/infra/pseudonym"
	"penstock/schemas/event"
)

const (
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traceID     = "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"
)

// shop is a service that does all that handlers do. What one could not do it says
// with status 500.
func shop(t *testing.T) http.Handler {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/read/{owner}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	mux.HandleFunc("/head/{owner}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "not for HEAD") })
	mux.HandleFunc("/nothing/{owner}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/missing/{owner}", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "gone", http.StatusGone) })
	mux.HandleFunc("/panic/{owner}", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/half/{owner}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/write/{owner}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%4d", n)
	})
	mux.HandleFunc("/hints/{owner}", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("/file/{owner}", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok && r.ProtoMajor == 1 {
			http.Error(w, "no ReaderFrom", http.StatusInternalServerError)
			return
		}
		http.ServeFile(w, r, file)
	})
	mux.HandleFunc("/stream/{owner}", func(w http.ResponseWriter, r *http.Request) {
		f, ok := w.(http.Flusher)
		if !ok {
			http.Error(w, "no Flusher", http.StatusInternalServerError)
			return
		}
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "first")
		f.Flush()
		// The client answers what it has got before it gets more.
		b, err := io.ReadAll(r.Body)
		if err != nil || http.NewResponseController(w).Flush() != nil {
			panic(err)
		}
		_, _ = w.Write(b)
	})
	mux.HandleFunc("/hijack/{owner}", func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbye")
		_ = rw.Flush()
	})
	return mux
}

func TestWhatHandlersDo(t *testing.T) {
	t.Parallel()
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprint("h2=", h2), func(t *testing.T) {
			t.Parallel()
			b := listening(t)
			rec := record(t, b.URL())
			h := rec.HTTP(shop(t), Rules{
				Owner: PathValue("owner"), User: Header("X-User"), Class: Pattern,
				Skip: func(r *http.Request) bool { return r.URL.Path == "/health" },
			})
			var running sync.WaitGroup // a row is made after its answer has gone out
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				running.Add(1)
				defer running.Done()
				h.ServeHTTP(w, r)
			}))
			server.EnableHTTP2 = h2
			server.StartTLS()
			defer server.Close()
			cases := []struct {
				method, path, body string
				status             int32
				bytes              int64
				answer             string // "" is not compared
			}{
				{"GET", "read", "", 200, 5, "hello"},
				{"HEAD", "head", "", 200, 0, ""},
				{"PUT", "nothing", "", 200, 0, ""},
				{"DELETE", "missing", "", 410, 5, "gone\n"},
				{"GET", "panic", "", 500, 0, ""},
				{"GET", "half", "", 500, 4, ""},
				{"PUT", "write", strings.Repeat("x", 1000), 201, 1004, "1000"},
				{"POST", "hints", "", 202, 0, ""},
				{"GET", "file", "", 200, 100_000, ""},
			}
			for _, c := range cases {
				got := ask(t, server, c.method, c.path, c.body)
				if got.status != 0 && got.status != c.status || c.answer != "" && got.text != c.answer {
					t.Errorf("%s: %+v", c.path, got)
				}
				if got.status != 0 && !strings.HasPrefix(got.timing, "app;dur=") {
					t.Errorf("%s: %+v", c.path, got)
				}
			}
			ask(t, server, http.MethodGet, "health", "")
			stream(t, server)
			n := len(cases) + 1
			if !h2 {
				hijack(t, server)
				n++
			}
			running.Wait()
			if err := rec.Close(testContext(t)); err != nil {
				t.Fatal(err)
			}
			rows := published(t, b, n)
			for _, c := range cases {
				r := rows[c.path]
				op := event.Write
				if c.method == "GET" || c.method == "HEAD" {
					op = event.Read
				}
				if r.Status != c.status || r.Bytes != c.bytes || r.Op != op || r.User != "anna" || r.Class != "/"+c.path+"/{owner}" ||
					r.ToComponent != "shop" || r.ToSite != "us-east" || r.ToServer != "s1" || r.Service < 0 || r.Service > 10_000_000 ||
					string(r.Trace[:]) != traceID || r.Wait != event.NullInt || r.Network != event.NullInt {
					t.Errorf("%s: %+v", c.path, r)
				}
			}
			if r := rows["stream"]; r.Status != 200 || r.Bytes != 5+6+6 {
				t.Errorf("stream: %+v", r)
			}
			if r := rows["hijack"]; !h2 && r.Status != 101 {
				t.Errorf("hijack: %+v", r)
			}
			if s := rec.Stats(); s.Sent != uint64(n) {
				t.Errorf("%d rows sent, expected %d", s.Sent, n)
			}
		})
	}
}

// reply is what a client got; all zero where the handler has panicked.
type reply struct {
	status       int32
	timing, text string
}

// ask sends a request for the owner of the path's name.
func ask(t *testing.T, s *httptest.Server, method, path, body string) reply {
	t.Helper()
	q, err := http.NewRequestWithContext(testContext(t), method, s.URL+"/"+path+"/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if path == "health" {
		q.URL.Path = "/health"
	}
	q.Close = true // or what fails would be asked again
	q.Header.Set("X-User", "anna")
	q.Header.Set("Traceparent", traceparent)
	a, err := s.Client().Do(q)
	if err != nil {
		if path != "panic" && path != "half" {
			t.Errorf("%s: %v", path, err)
		}
		return reply{}
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if (err != nil) != (path == "half") {
		t.Errorf("%s: %v", path, err)
	}
	if path == "half" {
		return reply{}
	}
	return reply{int32(a.StatusCode), a.Header.Get("Server-Timing"), string(text)}
}

// stream answers the first half of an answer before it gets the second.
func stream(t *testing.T, s *httptest.Server) {
	t.Helper()
	body, feed := io.Pipe()
	q, err := http.NewRequestWithContext(testContext(t), http.MethodPost, s.URL+"/stream/stream", body)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(a.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("%q, %v", first, err)
	}
	fmt.Fprintln(feed, "again")
	_ = feed.Close()
	if rest, err := io.ReadAll(a.Body); err != nil || string(rest) != "again\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func hijack(t *testing.T, s *httptest.Server) {
	t.Helper()
	q, err := http.NewRequestWithContext(testContext(t), http.MethodGet, s.URL+"/hijack/hijack", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Upgrade", "x")
	q.Header.Set("Connection", "Upgrade")
	a, err := s.Client().Do(q)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", a, err)
	}
	defer a.Body.Close()
	if text, err := io.ReadAll(a.Body); err != nil || string(text) != "bye" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTheWriterHasWhatTheServersHas, and nothing else.
func TestTheWriterHasWhatTheServersHas(t *testing.T) {
	t.Parallel()
	type f = http.Flusher
	type h = http.Hijacker
	type r = io.ReaderFrom
	type p = http.Pusher
	type w = http.ResponseWriter
	plain := struct{ w }{httptest.NewRecorder()}
	for i, server := range []w{
		plain,
		struct {
			w
			f
		}{w: plain},
		struct {
			w
			h
		}{w: plain},
		struct {
			w
			r
		}{w: plain},
		struct {
			w
			f
			h
		}{w: plain},
		struct {
			w
			f
			r
		}{w: plain},
		struct {
			w
			h
			r
		}{w: plain},
		struct {
			w
			f
			h
			r
		}{w: plain},
		struct {
			w
			f
			p
		}{w: plain},
	} {
		got := (&exchange{ResponseWriter: server}).writer()
		if can(got) != can(server) {
			t.Errorf("%d: the server's writer can %s, ours %s", i, can(server), can(got))
		}
		if u, ok := got.(interface{ Unwrap() w }); !ok || u.Unwrap() != server {
			t.Errorf("%d: does not unwrap", i)
		}
	}
}

func can(w http.ResponseWriter) (s string) {
	if _, ok := w.(http.Flusher); ok {
		s += "F"
	}
	if _, ok := w.(http.Hijacker); ok {
		s += "H"
	}
	if _, ok := w.(io.ReaderFrom); ok {
		s += "R"
	}
	if _, ok := w.(http.Pusher); ok {
		s += "P"
	}
	return s
}

// TestRulesThatPanic cost their column, and no request.
func TestRulesThatPanic(t *testing.T) {
	t.Parallel()
	b := listening(t)
	rec := record(t, b.URL())
	h := rec.HTTP(http.NotFoundHandler(), Rules{
		User:  func(*http.Request) string { panic("user") },
		Owner: func(*http.Request) string { return "bob" },
		Class: func(*http.Request) string { panic("class") },
		Op:    func(*http.Request) event.Op { panic("op") },
		Skip:  func(*http.Request) bool { panic("skip") },
		Fill: func(_ *http.Request, r *event.Request) {
			r.FromSite = "us-west"
			panic("fill")
		},
	})
	w := httptest.NewRecorder()
	q := httptest.NewRequest(http.MethodPut, "/", nil)
	q.RemoteAddr = "192.0.2.7:4711"
	h.ServeHTTP(w, q)
	if w.Code != 404 {
		t.Errorf("status %d", w.Code)
	}
	if err := rec.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	hasher, err := pseudonym.New([]byte("a key of tests"))
	if err != nil {
		t.Fatal(err)
	}
	r := published(t, b, 1)["bob"]
	if r.Status != 404 || r.FromSite != "us-west" || r.Op != event.Read || r.User != hasher.Client("192.0.2.7") {
		t.Errorf("row %+v", r)
	}
}

// TestAPanicIsSeenWhereItBegan: nothing recovers on the way.
func TestAPanicIsSeenWhereItBegan(t *testing.T) {
	t.Parallel()
	rec := record(t, listening(t).URL())
	mine := errors.New("mine")
	h := rec.HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(mine) }), Rules{})
	defer func() {
		if v := recover(); v != mine { //nolint:errorlint // The very value.
			t.Errorf("panicked with %v", v)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestTimedRecordsNothing(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(Timed(shop(t)))
	defer server.Close()
	if got := ask(t, server, http.MethodGet, "read", ""); got.text != "hello" || !strings.HasPrefix(got.timing, "app;dur=") {
		t.Errorf("%+v", got)
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	none := strings.Repeat("\x00", 16)
	for text, want := range map[string]string{
		traceparent:                  traceID,
		traceparent + "-more":        traceID,
		"":                           none,
		traceparent[:54]:             none,
		strings.ToUpper(traceparent): none,
		"ff" + traceparent[2:]:       none,
		strings.Replace(traceparent, "-", "_", 1):           none,
		strings.Replace(traceparent, "0af765", "0xf765", 1): none,
	} {
		if id := traceOf(text); string(id[:]) != want {
			t.Errorf("%q: %x", text, id)
		}
	}
}

// BenchmarkHTTP is what recording adds to a request, beside the handler alone.
func BenchmarkHTTP(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })
	rec := record(b, listening(b).URL())
	for _, c := range []struct {
		name string
		h    http.Handler
	}{
		{"alone", handler},
		{"recorded", rec.HTTP(handler, Rules{Owner: Header("X-Owner"), User: Header("X-User")})},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := &discard{header: http.Header{}}
			q := httptest.NewRequest(http.MethodGet, "/", nil)
			q.Header.Set("X-Owner", "bob")
			q.Header.Set("X-User", "anna")
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				c.h.ServeHTTP(w, q)
			}
		})
	}
}

// discard is a server's writer that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header                 { return d.header }
func (d *discard) Write(b []byte) (int, error)         { return len(b), nil }
func (d *discard) WriteString(s string) (int, error)   { return len(s), nil }
func (d *discard) WriteHeader(int)                     {}
func (d *discard) Flush()                              {}
func (d *discard) ReadFrom(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }

func (d *discard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}
