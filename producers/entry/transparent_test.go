package entry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"penstock/producers/entry"
)

// What a service leaves out is not made up.
func TestNoTypeIsGuessed(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html><script>")
	})}, nil)
	if got := get(t, p.url+"/"); got.body != "<html><script>" || got.Header["Content-Type"] != nil {
		t.Errorf("got %q of type %q", got.body, got.Header["Content-Type"])
	}
}

// A stranger can't say by which port, prefix or server it came.
func TestWhatStrangersSayOfTheirWay(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 2)
	p := run(t, []string{service(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Clone() })}, nil)
	get(t, p.url+"/", "X-Forwarded-Port", "1", "X-Forwarded-Prefix", "/admin", "X-Forwarded-Server", "x", "X-Forwarded-Ssl", "on", "X-Real-Ip", "192.0.2.1")
	h := <-seen
	for _, name := range []string{"X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-Ssl", "X-Real-Ip"} {
		if h[name] != nil {
			t.Errorf("the service got %s: %s", name, h[name])
		}
	}
	c := dial(t, p)
	c.send(t, "GET / HTTP/1.0\r\n\r\n")
	c.next(t, "GET")
	if h = <-seen; h["X-Forwarded-Host"] != nil {
		t.Errorf("of a client that names no host: %q", h["X-Forwarded-Host"])
	}
}

// Once the service answers, both sides may keep silent for as long as they want:
// what is slow then is a conversation.
func TestAConversationMayPause(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Type", "application/grpc")
		w.(http.Flusher).Flush()
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			fmt.Fprintf(w, "<%s>", b[:n])
			w.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	})}, func(o *entry.Options) {
		o.H2C, o.Limits.BodyGrace, o.Limits.BodyRate = true, 100*time.Millisecond, 1_000_000
	})
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!h2)
			protocols.SetUnencryptedHTTP2(h2)
			transport := &http.Transport{Protocols: protocols}
			t.Cleanup(transport.CloseIdleConnections)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			body, send := io.Pipe()
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/call", body)
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			for range 2 {
				time.Sleep(300 * time.Millisecond) // a silence is what is tested
				if _, err := io.WriteString(send, "on"); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 4)
				if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "<on>" {
					t.Fatalf("got %q, %v", got, err)
				}
			}
			_ = send.Close()
			if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "<>" {
				t.Errorf("then %q, %v", rest, err)
			}
		})
	}
}
