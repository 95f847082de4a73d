package entry_test

import (
	"net/http"
	"testing"
)

// The requests of a connection may be of all kinds, sent one by one or all at
// once: from the first with a body on another server has it.
func TestAConnectionHasRequestsOfAllKinds(t *testing.T) {
	t.Parallel()
	p := run(t, []string{service(t, readAll)}, nil)
	const (
		get     = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
		head    = "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"
		post    = "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
		chunked = "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
		wrong   = "GET /d HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n"
	)
	type request struct{ text, method, body string }
	script := []request{
		{get, "GET", "0 by HTTP/1.1"},
		{get, "GET", "0 by HTTP/1.1"},
		{head, "HEAD", ""},
		{post, "POST", "5 by HTTP/1.1"},
		{get, "GET", "0 by HTTP/1.1"},
		{chunked, "PUT", "3 by HTTP/1.1"},
		{get, "GET", "0 by HTTP/1.1"},
	}
	for _, together := range []bool{false, true} {
		w := dial(t, p)
		if together {
			all := ""
			for _, r := range script {
				all += r.text
			}
			w.send(t, all+wrong+get)
		}
		for i, r := range script {
			if !together {
				w.send(t, r.text)
			}
			if a := w.next(t, r.method); a == nil || a.StatusCode != http.StatusOK || a.body != r.body {
				t.Fatalf("all at once %v, number %d: got %+v", together, i, a)
			}
		}
		if !together {
			w.send(t, wrong+get)
		}
		if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusBadRequest {
			t.Errorf("all at once %v: got %+v", together, a)
		}
		if a := w.next(t, "GET"); a != nil {
			t.Errorf("all at once %v: after what is no request came %+v", together, a)
		}
	}
	// What is refused may also come first, or right after simple ones.
	w := dial(t, p)
	w.send(t, get+wrong)
	if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusOK {
		t.Errorf("got %+v", a)
	}
	if a := w.next(t, "GET"); a == nil || a.StatusCode != http.StatusBadRequest {
		t.Errorf("got %+v", a)
	}
}
