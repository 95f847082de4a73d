package entry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
)

// What gRPC needs of a proxy: HTTP/2 on both sides, both directions at once, TE,
// trailers, and an answer of trailers alone.
func TestStreamsOfHTTP2BothWays(t *testing.T) {
	t.Parallel()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		if r.URL.Path == "/refused" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "7")
			return
		}
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		flush := w.(http.Flusher).Flush
		flush()
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			fmt.Fprintf(w, "<%s>", b[:n])
			flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("Grpc-Status", r.Proto+" "+r.Header.Get("Te"))
	}))
	backend.Config.Protocols = protocols
	backend.Start()
	t.Cleanup(backend.Close)
	pool, err := upstream.New(upstream.Options{Name: "a", H2: true, Servers: []upstream.Server{{URL: backend.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	p := run(t, nil, func(o *entry.Options) { o.Local, o.H2C = pool, true })
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body, send := io.Pipe()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/call", body)
	r.Header.Set("Te", "trailers")
	resp, err := transport.RoundTrip(r) // before a byte of the body was sent
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, message := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(send, message); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(message)+2)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "<"+message+">" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	_ = send.Close()
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "<>" || resp.Trailer.Get("Grpc-Status") != "HTTP/2.0 trailers" {
		t.Errorf("then %q, %v, trailer %v", rest, err, resp.Trailer)
	}
	r, _ = http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/refused", http.NoBody)
	if resp, err = transport.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.Trailer.Get("Grpc-Status") != "7" {
		t.Errorf("trailer %v", resp.Trailer)
	}
	for _, row := range p.rows.await(t, 2) {
		if row.Status != http.StatusOK {
			t.Errorf("row %+v", row)
		}
	}
}
