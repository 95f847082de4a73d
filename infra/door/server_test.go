package door

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/testserver"
)

// TestServer answers from when it serves until its context ends, lets a request
// finish that runs then, and serves once.
func TestServer(t *testing.T) {
	t.Parallel()
	in, out := make(chan struct{}), make(chan struct{})
	s, err := Listen(ServerOptions{
		Connections: 10, Listen: "127.0.0.1:0", Logger: zerolog.Nop(), Name: "test",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(in)
			<-out
			_, _ = io.WriteString(w, "late")
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(ServerOptions{Connections: 1, Listen: s.Addr(), Name: "test"}); err == nil {
		t.Error("an address twice")
	}
	ending := make(chan struct{})
	s.HTTP.RegisterOnShutdown(func() { close(ending) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- s.Serve(ctx) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	got := make(chan string, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr(), nil)
		if err != nil {
			got <- err.Error()
			return
		}
		res, err := client.Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		b, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			b = []byte(err.Error())
		}
		got <- string(b)
	}()
	<-in
	cancel()
	<-ending
	close(out)
	if text := <-got; text != "late" {
		t.Errorf("a request that ran at the end got %q", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.Begin(); !errors.Is(err, ErrClosed) {
		t.Errorf("again: %v", err)
	}
	s.Close()
	s.Close()
}

// TestServerThatNeverServes frees its address.
func TestServerThatNeverServes(t *testing.T) {
	t.Parallel()
	s, err := Listen(ServerOptions{Connections: 1, Listen: testserver.FreeAddress(t), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Begin(); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	again, err := Listen(ServerOptions{Connections: 1, Listen: s.Addr(), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestHasTag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  bool
	}{
		{nil, false},
		{[]string{`"7"`}, true},
		{[]string{`"5", W/"7"`}, true},
		{[]string{`"5"`, `"7"`}, true},
		{[]string{`*`}, true},
		{[]string{`7`, `"77"`, `"5"`}, false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header["If-None-Match"] = c.lines
		if got := HasTag(r, `"7"`); got != c.want {
			t.Errorf("%q: %v", c.lines, got)
		}
	}
}
