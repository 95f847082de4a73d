package s3front

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// FuzzServe: a request that nobody signed is refused, whatever it is, and never makes the
// front panic.
func FuzzServe(f *testing.F) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"PUT /bucket/key?partNumber=1&uploadId=2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n\r\nabc",
		"GET /bucket?list-type=2&encoding-type=url HTTP/1.1\r\nHost: x\r\nAuthorization: AWS4-HMAC-SHA256 Credential=writer/20260101/eu-test-1/s3/aws4_request, SignedHeaders=host, Signature=0\r\nX-Amz-Date: 20260101T000000Z\r\n\r\n",
		"GET /bucket/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=writer%2F20260101%2Feu-test-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=0 HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /bucket?delete HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "HEAD //%2e%2e/%00 HTTP/1.0\r\n\r\n",
	} {
		f.Add(text)
	}
	var panics strings.Builder
	logger := zerolog.New(&panics).Level(zerolog.ErrorLevel)
	front, err := New(Options{Coder: memory(f, nil).Coder, Keys: testKeys(), Listen: "127.0.0.1:0", Region: region, Logger: &logger})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(front.Close)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil {
					if e, ok := p.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
						panic(p)
					}
				}
			}()
			front.ServeHTTP(w, r)
		}()
		if panics.Len() > 0 {
			t.Fatal(panics.String())
		}
		if w.Code < 400 {
			t.Fatalf("%q: %d %s", text, w.Code, w.Body)
		}
	})
}
