package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// answer is what is known after a request.
type answer int

const (
	done     answer = iota
	refused         // it was not carried out, and would not be if sent again
	conflict        // its condition is not met
	missing         // there is no such object
	busy            // it was not carried out, and may be if sent again
	unknown         // nobody can tell
)

// classify tells what an error says about the request.
func classify(err error) answer {
	if err == nil {
		return done
	}
	var e minio.ErrorResponse
	if !errors.As(err, &e) || e.StatusCode == 0 {
		return unknown
	}
	switch e.Code {
	case "NoSuchBucket":
		return refused
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException",
		"RequestLimitExceeded", "RequestThrottled":
		return busy
	case "NoSuchUpload":
		return missing
	}
	switch e.StatusCode {
	case http.StatusPreconditionFailed:
		return conflict
	case http.StatusNotFound:
		return missing
	case http.StatusTooManyRequests:
		return busy
	case http.StatusConflict:
		// S3 says so when two conditional writes meet. versitygw also says it of
		// whatever goes wrong when it puts a file in its place, such as a deletion
		// that takes the folder away.
		if e.Code == "ConditionalRequestConflict" || e.Code == "OperationAborted" {
			return busy
		}
		return unknown
	case http.StatusRequestTimeout, 499: // 499: a proxy lost us
		return unknown
	case http.StatusNotImplemented:
		return refused
	}
	if e.Code == "BadRequest" {
		// Not a word of this request: what was left of another before it on the
		// connection was taken for one.
		return unknown
	}
	if e.StatusCode >= 500 || e.Code == "RequestTimeout" || e.Code == "IncompleteBody" {
		return unknown
	}
	return refused
}

// overloaded reports whether an error asks for fewer requests.
func overloaded(err error) bool {
	var e minio.ErrorResponse
	return errors.As(err, &e) && (e.StatusCode == http.StatusServiceUnavailable || e.StatusCode == http.StatusTooManyRequests)
}

// pacer makes all requests of a store wait after the service said that it is
// overloaded.
type pacer struct {
	mu    sync.Mutex
	until time.Time
}

func (b *bucket) slow(d time.Duration) {
	b.o.Count("throttled", 1)
	until := b.o.Clock.Now().Add(d)
	b.pace.mu.Lock()
	defer b.pace.mu.Unlock()
	if until.After(b.pace.until) {
		b.pace.until = until
	}
}

// admitted waits until requests may be sent.
func (b *bucket) admitted(ctx context.Context) error {
	b.pace.mu.Lock()
	d := b.pace.until.Sub(b.o.Clock.Now())
	b.pace.mu.Unlock()
	if d <= 0 {
		return ctx.Err()
	}
	return b.o.Clock.Sleep(ctx, d)
}

// backoff is the pause after an attempt, drawn so that many who failed at once
// don't come back at once.
func (b *bucket) backoff(attempt int) time.Duration {
	most := min(b.o.Pause<<min(attempt, 10), 40*b.o.Pause)
	return most/2 + rand.N(most/2+1)
}

// rest pauses after a failed attempt.
func (b *bucket) rest(ctx context.Context, attempt int, err error) error {
	b.o.Count("retry", 1)
	d := b.backoff(attempt)
	if overloaded(err) {
		b.slow(d)
	}
	if err := b.o.Clock.Sleep(ctx, d); err != nil {
		return err
	}
	return b.admitted(ctx)
}

// send sends a request that may be sent again whatever became of it, until its
// answer is one or Attempts are used up. Its error tells by classify what the
// last answer was.
func (b *bucket) send(ctx context.Context, what string, request func(context.Context) error) error {
	if err := b.admitted(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for attempt := 0; ; attempt++ {
		err := request(ctx)
		switch a := classify(err); {
		case a == done:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case a != busy && a != unknown, attempt+1 >= b.o.Attempts:
			return fmt.Errorf("%s: %w", what, b.safe(err))
		}
		if err := b.rest(ctx, attempt, err); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// failure is an error of the service or of the way there, without anything that
// may repeat a key. It still classifies.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// safe leaves out of an error what must not be logged. Services repeat access
// keys and signatures in what they say about them; then the code has to do.
func (b *bucket) safe(err error) error {
	text := err.Error()
	var e minio.ErrorResponse
	if errors.As(err, &e) && e.StatusCode != 0 {
		text = fmt.Sprintf("%s (status %d)", e.Code, e.StatusCode)
		if e.StatusCode >= 500 || e.StatusCode == http.StatusNotFound {
			text = fmt.Sprintf("%s (%s, status %d)", strings.TrimSpace(e.Message), e.Code, e.StatusCode)
		}
	}
	for _, secret := range []string{b.o.SecretKey, b.o.AccessKey, b.o.SessionToken} {
		if len(secret) > 0 {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return &failure{text, err}
}
