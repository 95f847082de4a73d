package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// TestAnswers: what a server sends, and what becomes of it. reuse is whether the
// connection serves the next request.
func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for name, tc := range map[string]struct {
		method string // GET
		answer string
		close  bool // the server closes after it
		status int
		body   string
		err    error // of Do
		bodErr error
		header http.Header // these at least
		trail  http.Header
		reuse  bool
	}{
		"length":             {answer: okAnswer, status: 200, body: "ok", reuse: true},
		"length of nothing":  {answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200, reuse: true},
		"no reason phrase":   {answer: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", reuse: true},
		"mere line feeds":    {answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", status: 200, body: "ok", reuse: true},
		"mixed line ends":    {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok", status: 200, body: "ok", reuse: true},
		"folded header":      {answer: "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", header: http.Header{"X-A": {"b c"}}, reuse: true},
		"lower-case names":   {answer: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a:b\r\nx-a: c\r\n\r\nok", status: 200, body: "ok", header: http.Header{"X-A": {"b", "c"}}, reuse: true},
		"long header":        {answer: "HTTP/1.1 200 OK\r\nX-A: " + long[:10_000] + "\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", reuse: true},
		"header beyond":      {answer: "HTTP/1.1 200 OK\r\nX-A: " + long + "\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"long body":          {answer: "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + long, status: 200, body: long, reuse: true},
		"said to close":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Foo, Close\r\n\r\nok", status: 200, body: "ok"},
		"1.0 closes":         {answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
		"1.0 keeps":          {answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok", status: 200, body: "ok", reuse: true},
		"until close":        {answer: "HTTP/1.1 200 OK\r\n\r\n" + long, close: true, status: 200, body: long},
		"chunks":             {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;ext=1\r\nk\r\n0\r\n\r\n", status: 200, body: "ok", reuse: true},
		"Chunked":            {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", status: 200, body: "ok", reuse: true},
		"trailer":            {answer: "HTTP/1.1 200 OK\r\nTrailer: X-T, X-U\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: t\r\nX-V: v\r\n\r\n", status: 200, body: "ok", trail: http.Header{"X-T": {"t"}, "X-U": nil, "X-V": {"v"}}, reuse: true},
		"framing in trailer": {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 5\r\n\r\n", status: 200, body: "ok", bodErr: ErrMalformed},
		"framing announced":  {answer: "HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", err: ErrMalformed},
		"bad trailer":        {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nno colon\r\n\r\n", status: 200, body: "ok", bodErr: ErrMalformed},
		"cut trailer":        {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n", close: true, status: 200, body: "ok", bodErr: ErrReset},
		"bad chunk size":     {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n", status: 200, bodErr: ErrMalformed},
		"huge chunk size":    {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nok\r\n", status: 200, bodErr: ErrMalformed},
		"chunk without end":  {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n", status: 200, body: "ok", bodErr: ErrMalformed},
		"cut chunks":         {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", close: true, status: 200, body: "ok", bodErr: ErrReset},
		"cut length":         {answer: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", close: true, status: 200, body: "ok", bodErr: ErrReset},
		"cut head":           {answer: "HTTP/1.1 200 OK\r\nContent-Le", close: true, err: ErrReset},
		"nothing":            {answer: "", close: true, err: ErrReset},
		"bytes behind":       {answer: okAnswer + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", status: 200, body: "ok"},
		"HEAD":               {method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", status: 200, header: http.Header{"Content-Length": {"20"}}, reuse: true},
		"HEAD chunked":       {method: "HEAD", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", status: 200, reuse: true},
		"HEAD without":       {method: "HEAD", answer: "HTTP/1.1 200 OK\r\n\r\n", status: 200, reuse: true},
		"HEAD with a body":   {method: "HEAD", answer: okAnswer, status: 200},
		"204":                {answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, reuse: true},
		"204 with length":    {answer: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", status: 204, reuse: true},
		"304":                {answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\nETag: \"x\"\r\n\r\n", status: 304, reuse: true},
		"304 with a body":    {answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", status: 304},
		"100 before":         {answer: "HTTP/1.1 100 Continue\r\n\r\n" + okAnswer, status: 200, body: "ok", reuse: true},
		"103 before":         {answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + okAnswer, status: 200, body: "ok", reuse: true},
		"100 for ever":       {answer: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 17) + okAnswer, err: ErrMalformed},
		"101":                {answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", err: ErrMalformed},
		"equal lengths":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", header: http.Header{"Content-Length": {"2"}}, reuse: true},
		"other lengths":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", err: ErrMalformed},
		"list of lengths":    {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", err: ErrMalformed},
		"signed length":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", err: ErrMalformed},
		"negative length":    {answer: "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", err: ErrMalformed},
		"empty length":       {answer: "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok", err: ErrMalformed},
		"hex length":         {answer: "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", err: ErrMalformed},
		"huge length":        {answer: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", err: ErrMalformed},
		"length and chunks":  {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", err: ErrMalformed},
		"unknown coding":     {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", err: ErrMalformed},
		"identity":           {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", err: ErrMalformed},
		"chunked twice":      {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", err: ErrMalformed},
		"chunked in 1.0":     {answer: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", err: ErrMalformed},
		"space before colon": {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"folded first":       {answer: "HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"NUL in a value":     {answer: "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"CR in a value":      {answer: "HTTP/1.1 200 OK\r\nX: a\rb: c\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"no colon":           {answer: "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"not HTTP":           {answer: "SSH-2.0-OpenSSH_9.2\r\n\r\n", err: ErrMalformed},
		"HTTP/2":             {answer: "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"HTTP/0.9":           {answer: "<html>hello</html>\n\n", close: true, err: ErrMalformed},
		"status of 2 digits": {answer: "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"status of 4 digits": {answer: "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"status 099":         {answer: "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"status of letters":  {answer: "HTTP/1.1 2OO OK\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"control in reason":  {answer: "HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok", err: ErrMalformed},
		"status 999":         {answer: "HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok", status: 999, body: "ok", reuse: true},
		"421 passes":         {answer: "HTTP/1.1 421 Misdirected Request\r\nPenstock-Site: b\r\nContent-Length: 0\r\n\r\n", status: 421, header: http.Header{"Penstock-Site": {"b"}}, reuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				for {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					_, _ = io.WriteString(c, tc.answer)
					if tc.close {
						return
					}
				}
			})
			p := newPool(t, Options{Retry: Retry{Attempts: 1}}, s.URL)
			method := tc.method
			if method == "" {
				method = "GET"
			}
			got := do(p, newRequest(t, method, "/", ""))
			if !errors.Is(got.err, tc.err) || !errors.Is(got.bodyErr, tc.bodErr) {
				t.Fatalf("errors %v and %v, want %v and %v", got.err, got.bodyErr, tc.err, tc.bodErr)
			}
			if got.status != tc.status || got.body != tc.body || got.a.Status != tc.status || got.a.BytesIn != int64(len(tc.body)) {
				t.Errorf("status %d, body %.80q, attempt %+v", got.status, got.body, got.a)
			}
			for k, v := range tc.header {
				if !reflect.DeepEqual(got.header[k], v) {
					t.Errorf("header %s: %q, want %q", k, got.header[k], v)
				}
			}
			if !reflect.DeepEqual(got.trailer, tc.trail) {
				t.Errorf("trailer %v, want %v", got.trailer, tc.trail)
			}
			if (idleConns(p) == 1) != tc.reuse {
				t.Errorf("%d idle connections, want reuse %v", idleConns(p), tc.reuse)
			}
			if st := p.Status()[0]; st.Open != st.Idle || st.Outstanding != 0 {
				t.Errorf("left over: %+v", st)
			}
			if failed := tc.err != nil || tc.bodErr != nil; failed != (got.a.Err != nil) || failed != (got.a.Reason != "") {
				t.Errorf("attempt %+v", got.a)
			}
		})
	}
}

// TestNothingOfAnAnswerIsTakenForTheNext: bytes behind an answer, in the same
// packet or later, never become the next one's.
func TestNothingOfAnAnswerIsTakenForTheNext(t *testing.T) {
	t.Parallel()
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	more := make(chan struct{})
	sent := make(chan struct{}, 100)
	s := serveRaw(t, func(n int, c net.Conn, r *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			if _, err := io.WriteString(c, okAnswer); err != nil {
				return
			}
			if n%2 == 1 {
				<-more // once the client has its answer
				_, _ = io.WriteString(c, evil)
				sent <- struct{}{}
			}
		}
	})
	p := newPool(t, Options{}, s.URL)
	for i := range 20 {
		if got := do(p, newRequest(t, "GET", "/", "")); got.body != "ok" {
			t.Fatalf("request %d: %v", i, got)
		}
		if i%2 == 0 {
			more <- struct{}{}
			<-sent
		} else {
			p.Close() // the next one is a bad connection again
			p.servers[0].conns.mayKeep(true)
		}
	}
	if st := p.Status()[0]; st.Requests != 20 || p.servers[0].stale.Load() != 10 {
		t.Errorf("%+v, %d stale", st, p.servers[0].stale.Load())
	}
}
