package s3

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7/pkg/signer"

	"penstock/infra/testserver"
)

// proxy stands between a store and its server and does harm to requests. It signs
// what it passes on anew, so that it may change it.
type proxy struct {
	server testserver.S3
	url    string
	out    *http.Transport

	mu    sync.Mutex
	fault fault
	seen  []string // method and path of every request, in order of arrival
}

// fault handles a request in the proxy's place, and may forward it. It returns
// false to have it passed on unharmed.
type fault func(w http.ResponseWriter, r *http.Request, forward func() *answered) bool

// answered is what the server answered to a request.
type answered struct {
	status int
	header http.Header
	body   []byte
}

func newProxy(t *testing.T, f fault) *proxy {
	t.Helper()
	p := &proxy{server: testserver.VersityGW(t), fault: f, out: &http.Transport{DisableKeepAlives: true}}
	s := httptest.NewServer(http.HandlerFunc(p.handle))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// options are those of a store behind the proxy.
func (p *proxy) options(t *testing.T) Options {
	o := options(t)
	o.Endpoint = p.url
	return o
}

// set changes what harm is done; nil does none.
func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.seen = f, nil
}

// requests returns how many of a method have arrived since set.
func (p *proxy) requests(method string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if strings.HasPrefix(s, method+" ") {
			n++
		}
	}
	return n
}

func (p *proxy) handle(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	f := p.fault
	p.seen = append(p.seen, r.Method+" "+r.URL.RequestURI())
	p.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	forward := func() *answered { return p.forward(r, body) }
	if f != nil && f(w, r, forward) {
		return
	}
	forward().send(w)
}

func (p *proxy) forward(r *http.Request, body []byte) *answered {
	out, err := http.NewRequest(r.Method, p.server.Endpoint+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	out.ContentLength = int64(len(body))
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	for k, v := range r.Header {
		if k != "Authorization" && k != "X-Amz-Date" && k != "Connection" {
			out.Header[k] = v
		}
	}
	out = signer.SignV4(*out, p.server.AccessKey, p.server.SecretKey, "", p.server.Region)
	res, err := p.out.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodHead {
		return &answered{res.StatusCode, res.Header, nil}
	}
	return &answered{res.StatusCode, res.Header, got}
}

func (a *answered) send(w http.ResponseWriter) {
	for k, v := range a.header {
		if k != "Connection" {
			w.Header()[k] = v
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// cut ends the connection without an answer.
func cut() bool { panic(http.ErrAbortHandler) }

// refuse answers as services do.
func refuse(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>as the test wants it</Message></Error>")
	return true
}

// once does harm to the first requests for which it is meant.
func once(n int, meant func(*http.Request) bool, f fault) fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, forward func() *answered) bool {
		mu.Lock()
		hit := n > 0 && meant(r)
		if hit {
			n--
		}
		mu.Unlock()
		return hit && f(w, r, forward)
	}
}

// strip makes the server a one that never heard of some headers.
func strip(headers ...string) fault {
	return func(_ http.ResponseWriter, r *http.Request, _ func() *answered) bool {
		if r.Method == http.MethodPut {
			for _, h := range headers {
				r.Header.Del(h)
			}
		}
		return false
	}
}

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }
func isGet(r *http.Request) bool { return r.Method == http.MethodGet }
func isDoc(r *http.Request) bool { return strings.Contains(r.URL.Path, "/.penstock/doc/") }

func putsDoc(r *http.Request) bool { return isPut(r) && isDoc(r) }
func getsDoc(r *http.Request) bool { return isGet(r) && isDoc(r) }
