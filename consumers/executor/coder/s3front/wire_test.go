package s3front

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// wire is a request as it is written by hand.
type wire struct {
	method, path string
	header       http.Header
	body         []byte
	// payload is X-Amz-Content-Sha256; empty: that of body.
	payload string
	// length is the Content-Length that is said; nil: that of body.
	length *int64
	at     time.Time
	key    *Key
	region string
}

// signed returns the bytes of a request, signed.
func (r wire) signed(t testing.TB, host string) []byte {
	t.Helper()
	if r.header == nil {
		r.header = http.Header{}
	}
	if r.at.IsZero() {
		r.at = time.Now()
	}
	k := testKeys()[access]
	if r.key != nil {
		k = *r.key
	}
	if r.region == "" {
		r.region = region
	}
	if r.payload == "" {
		sum := sha256.Sum256(r.body)
		r.payload = hex.EncodeToString(sum[:])
	}
	length := int64(len(r.body))
	if r.length != nil {
		length = *r.length
	}
	req, err := http.NewRequestWithContext(context.Background(), r.method, "http://"+host+r.path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	req.Header.Set("X-Amz-Content-Sha256", r.payload)
	req.ContentLength = length
	// S3 signs a path as it would write it, whatever way it was written.
	path, _, _ := strings.Cut(r.path, "?")
	if plain, err := url.PathUnescape(path); err == nil {
		req.URL.Opaque = "//" + host + strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(plain), "+", "%20"), "%2F", "/")
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(context.Background(), aws.Credentials{AccessKeyID: k.Access, SecretAccessKey: k.Secret}, req, r.payload, "s3", r.region, r.at); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.method, r.path, host)
	if length >= 0 && (length > 0 || r.method == http.MethodPut || r.method == http.MethodPost) {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	for k, vs := range req.Header {
		for _, v := range vs {
			fmt.Fprintf(&b, "%s: %s\r\n", k, v)
		}
	}
	b.WriteString("\r\n")
	b.Write(r.body)
	return b.Bytes()
}

// reply is an answer, and S3's code in it.
type reply struct {
	status int
	code   string
	text   string
	header http.Header
}

// dial opens a connection to the front.
func (w *world) dial() (net.Conn, *bufio.Reader) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.front.Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c, bufio.NewReader(c)
}

// answer reads an answer.
func answerOf(t testing.TB, r *bufio.Reader, method string) reply {
	t.Helper()
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	_ = res.Body.Close()
	var e struct{ Code string }
	if res.StatusCode >= 400 {
		_ = xml.Unmarshal(b, &e)
	}
	return reply{res.StatusCode, e.Code, string(b), res.Header}
}

// send writes a request on a connection of its own and reads the answer.
func (w *world) send(r wire) reply {
	w.t.Helper()
	c, in := w.dial()
	if _, err := c.Write(r.signed(w.t, w.front.Addr())); err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return answerOf(w.t, in, r.method)
}

// expect sends a request and checks status and code.
func (w *world) expect(name string, r wire, status int, code string) reply {
	w.t.Helper()
	got := w.send(r)
	if got.status != status || got.code != code {
		w.t.Errorf("%s: %d %s, expected %d %s\n%s", name, got.status, got.code, status, code, got.text)
	}
	return got
}

// put is the wire of a small object.
func put(path, data string) wire {
	return wire{method: http.MethodPut, path: path, body: []byte(data)}
}

// with returns a wire with one more header.
func (r wire) with(name, value string) wire {
	h := http.Header{}
	for k, v := range r.header {
		h[k] = v
	}
	h[name] = []string{value}
	r.header = h
	return r
}

// repeat is a text many times.
func repeat(s string, n int) string { return strings.Repeat(s, n) }

func base64Of(b ...byte) string { return base64.StdEncoding.EncodeToString(b) }
