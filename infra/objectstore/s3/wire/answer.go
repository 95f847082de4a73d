package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Answer is what is known after a request.
type Answer int

// Answers.
const (
	Done     Answer = iota
	Refused         // it was not carried out, and would not be if sent again
	Conflict        // its condition is not met
	Missing         // there is no such object
	Busy            // it was not carried out, and may be if sent again
	Unknown         // nobody can tell
)

// Classify tells what an error says about the request.
func Classify(err error) Answer {
	if err == nil {
		return Done
	}
	var e minio.ErrorResponse
	if !errors.As(err, &e) || e.StatusCode == 0 {
		return Unknown
	}
	switch e.Code {
	case "NoSuchBucket":
		return Refused
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException",
		"RequestLimitExceeded", "RequestThrottled":
		return Busy
	case "NoSuchUpload":
		return Missing
	}
	switch e.StatusCode {
	case http.StatusPreconditionFailed:
		return Conflict
	case http.StatusNotFound:
		return Missing
	case http.StatusTooManyRequests:
		return Busy
	case http.StatusConflict:
		// S3 says so when two conditional writes meet. versitygw also says it of
		// whatever goes wrong when it puts a file in its place, such as a deletion
		// that takes the folder away.
		if e.Code == "ConditionalRequestConflict" || e.Code == "OperationAborted" {
			return Busy
		}
		return Unknown
	case http.StatusRequestTimeout, 499: // 499: a proxy lost us
		return Unknown
	case http.StatusNotImplemented:
		return Refused
	}
	if e.Code == "BadRequest" {
		// Not a word of this request: what was left of another before it on the
		// connection was taken for one.
		return Unknown
	}
	if e.StatusCode >= 500 || e.Code == "RequestTimeout" || e.Code == "IncompleteBody" {
		return Unknown
	}
	return Refused
}

// Overloaded reports whether an error asks for fewer requests.
func Overloaded(err error) bool {
	var e minio.ErrorResponse
	return errors.As(err, &e) && (e.StatusCode == http.StatusServiceUnavailable || e.StatusCode == http.StatusTooManyRequests)
}

// failure is an error of the service or of the way there, without anything that
// may repeat a key. It still classifies.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// Safe leaves out of an error what must not be logged. Services repeat access
// keys and signatures in what they say about them; then the code has to do.
func (c *Client) Safe(err error) error {
	text := err.Error()
	var e minio.ErrorResponse
	if errors.As(err, &e) && e.StatusCode != 0 {
		text = fmt.Sprintf("%s (status %d)", e.Code, e.StatusCode)
		if e.StatusCode >= 500 || e.StatusCode == http.StatusNotFound {
			text = fmt.Sprintf("%s (%s, status %d)", strings.TrimSpace(e.Message), e.Code, e.StatusCode)
		}
	}
	for _, secret := range c.secrets {
		if len(secret) > 0 {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return &failure{text, err}
}
