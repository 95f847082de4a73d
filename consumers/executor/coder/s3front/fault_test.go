package s3front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder"
)

// TestGoneIsNoFailure: that a client has gone is no error of ours, also in the middle of
// an answer; anything else is, and so is a read that ends while the client is there.
func TestGoneIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		gone bool
		want string
	}{
		{fmt.Errorf("fetch: %w", context.Canceled), true, "debug"},
		{fmt.Errorf("%w: %w", coder.ErrTooFew, context.Canceled), true, "debug"},
		{fmt.Errorf("fetch: %w", context.Canceled), false, "error"},
		{errors.New("the disk is broken"), true, "error"},
		{coder.ErrTooFew, true, "warn"},
	} {
		var lines bytes.Buffer
		log := zerolog.New(&lines)
		b := &storage{log: &log}
		ctx, cancel := context.WithCancel(context.Background())
		if c.gone {
			cancel()
		}
		q := &request{http: httptest.NewRequestWithContext(ctx, http.MethodGet, "/b/k", http.NoBody)}
		_ = b.fault(context.WithValue(context.Background(), requestKey{}, q), c.err, subject{bucket: "b", key: "k"})
		if !bytes.Contains(lines.Bytes(), []byte(`"level":"`+c.want+`"`)) || bytes.Count(lines.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%v, gone %v: %s", c.err, c.gone, lines.Bytes())
		}
		cancel()
	}
}
