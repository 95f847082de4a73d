package entry_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"penstock/producers/entry"
)

// A body of which the beginning is gone is not sent again, so that the one answer
// is the one row.
func TestABodyThatIsGoneIsNoRetry(t *testing.T) {
	t.Parallel()
	first := service(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	calls := make(chan struct{}, 10)
	second := service(t, func(http.ResponseWriter, *http.Request) { calls <- struct{}{} })
	p := run(t, []string{first, second}, func(o *entry.Options) { o.Replay = 1000 })
	if a := do(t, "PUT", p.url+"/u/ada/x", strings.NewReader(strings.Repeat("x", 200_000))); a.StatusCode != http.StatusServiceUnavailable || len(calls) > 0 {
		t.Errorf("got %d, %d calls of the second server", a.StatusCode, len(calls))
	}
	if rows := p.rows.await(t, 1); len(rows) != 1 || rows[0].Status != http.StatusServiceUnavailable || rows[0].ToServer != "a-1" {
		t.Errorf("rows %+v", rows)
	}
}
