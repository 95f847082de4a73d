package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFirst(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = r.Method + r.URL.String() + string(b) + r.Host
		w.Header().Set("X-A", "b")
		io.WriteString(w, strings.Repeat("x", 1024))
	}))
	defer srv.Close()
	p, err := New(Options{Servers: []Server{{URL: srv.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		req, _ := http.NewRequest("POST", "http://x/a?b=c", strings.NewReader("hello"))
		resp, a, err := p.Do(req, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		t.Log(len(b), err, got, a, p.Status())
	}
}
