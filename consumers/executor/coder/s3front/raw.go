package s3front

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/versity/versitygw/s3err"

	"penstock/infra/clock"
)

// rawBody is a body as it comes from a client, who must send on.
type rawBody struct {
	r       io.Reader
	control *http.ResponseController
	pace    pace
	clock   clock.Clock
	// left is what is to come, below 0 when it wasn't said; n what came.
	left, n int64
	// err is S3's error of a body that isn't whole, done that it is.
	err  error
	done bool
}

// Read implements io.Reader. After an error every Read has it. io.EOF is only given for
// a body that is whole.
func (b *rawBody) Read(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.done:
		return 0, io.EOF
	}
	now := b.clock.Now()
	// A connection that can't have deadlines has none anyway: then it is closed.
	_ = b.control.SetReadDeadline(now.Add(b.pace.patience()))
	n, err := b.r.Read(p)
	b.pace.moved(n, b.clock.Now().Sub(now))
	b.n += int64(n)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.done = true
		// net/http watches from now on whether the client is there, for as long as the
		// answer takes.
		_ = b.control.SetReadDeadline(time.Time{})
		return n, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.err = s3err.APIError{
			Code: tooSlow, HTTPStatusCode: http.StatusBadRequest,
			Description: "Your socket connection to the server was not read from or written to within the timeout period.",
		}
	default:
		b.err = s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	return n, b.err
}

// hurry bounds how long the rest of a body may take that nobody wants.
func (b *rawBody) hurry() {
	if !b.done && b.left != 0 {
		_ = b.control.SetReadDeadline(b.clock.Now().Add(min(b.pace.idle, headerTimeout)))
	}
}
