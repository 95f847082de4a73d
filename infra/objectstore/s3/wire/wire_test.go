package wire

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"go.uber.org/goleak"

	"penstock/infra/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	host, secure, err := Endpoint(s.URL, false)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{
		Host: host, Secure: secure, Region: "r", AccessKey: "a", SecretKey: "s", Timeout: 20 * time.Second, Connections: 4,
		Attempts: 3, Pause: time.Millisecond, Clock: clock.System(), Count: func(string, int64) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestContentIsNotReadAfterTheRequest: when it has returned, its memory may be written,
// although the service hasn't read what was sent. The race detector tells.
func TestContentIsNotReadAfterTheRequest(t *testing.T) {
	t.Parallel()
	arrived, enough := make(chan struct{}), make(chan struct{})
	defer close(enough)
	c := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-enough
	})
	content := make([]byte, 16<<20)
	for round := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.PutObject(WithContent(ctx, content), "bucket", "key", bytes.NewReader(content), int64(len(content)), "", "",
				minio.PutObjectOptions{DisableContentSha256: true})
			done <- err
		}()
		<-arrived
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for i := range content {
			content[i] = byte(round)
		}
	}
}

// TestAFailureIsToldAtOnce: within Send as often as it says, and without rests that
// nobody asked for: those of the client library are of no length.
func TestAFailureIsToldAtOnce(t *testing.T) {
	t.Parallel()
	if minio.DefaultRetryUnit != 0 {
		t.Errorf("the client library rests up to %v after each attempt", minio.DefaultRetryUnit)
	}
	requests := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusInternalServerError)
	})
	err := c.Send(t.Context(), "try", func(ctx context.Context) error {
		return c.RemoveObject(ctx, "bucket", "key", minio.RemoveObjectOptions{})
	})
	if Classify(err) != Unknown || requests != 3 {
		t.Errorf("%d requests: %v", requests, err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   string
		status int
		want   Answer
	}{
		{"NoSuchKey", 404, Missing},
		{"NoSuchUpload", 404, Missing},
		{"NoSuchBucket", 404, Refused},
		{"AccessDenied", 403, Refused},
		{"PreconditionFailed", 412, Conflict},
		{"SlowDown", 503, Busy},
		{"", 429, Busy},
		{"ConditionalRequestConflict", 409, Busy},
		{"BucketNotEmpty", 409, Unknown},
		{"InternalError", 500, Unknown},
		{"IncompleteBody", 400, Unknown},
		{"NotImplemented", 501, Refused},
		{"", 0, Unknown},
	} {
		if got := Classify(minio.ErrorResponse{Code: c.code, StatusCode: c.status}); got != c.want {
			t.Errorf("%s %d: %v, want %v", c.code, c.status, got, c.want)
		}
	}
	if Classify(nil) != Done || Classify(errors.New("cut")) != Unknown {
		t.Error("no error, or none of the service's")
	}
}
