package spanfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"penstock/producers/otlp/join"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is all that came of reading.
type result struct {
	rows  []event.Request
	bad   []string
	notes []string
	stats join.Stats
	err   error
}

func read(o Options, files ...string) (res result) {
	o.Bad = func(b recording.BadLine) { res.bad = append(res.bad, fmt.Sprintf("line %d: %s", b.Line, b.Expected)) }
	o.Note = func(_, text string) { res.notes = append(res.notes, text) }
	res.stats, res.err = Read(context.Background(), files, o, func(r *event.Request) error {
		res.rows = append(res.rows, *r)
		return r.Check()
	})
	return res
}

// readText reads what stands in a file of that name.
func readText(t testing.TB, o Options, content string) result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spans")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return read(o, path)
}

// String writes the rows, one a line, and the account.
func (r result) String() string {
	var b strings.Builder
	for i := range r.rows {
		q := &r.rows[i]
		us := func(v int64) string {
			if v == event.NullInt {
				return "?"
			}
			return fmt.Sprint(v)
		}
		line := fmt.Sprintf("%d %s@%s→%s@%s/%s service=%s network=%s status=%d %s %s",
			q.Time, q.FromComponent, q.FromSite, q.ToComponent, q.ToSite, q.ToServer,
			us(q.Service), us(q.Network), q.Status, q.Op, q.Class)
		fmt.Fprintln(&b, strings.TrimSpace(line))
	}
	fmt.Fprintln(&b, &r.stats.Account)
	for _, bad := range r.bad {
		fmt.Fprintln(&b, "bad:", bad)
	}
	if r.err != nil {
		fmt.Fprintln(&b, "error:", r.err)
	}
	return b.String()
}

// expect compares with lines, whatever their indent.
func (r result) expect(t *testing.T, want string) {
	t.Helper()
	var lines []string
	for l := range strings.Lines(want) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if got := strings.TrimSpace(r.String()); got != strings.Join(lines, "\n") {
		t.Errorf("got:\n%s\nexpected:\n%s", got, strings.Join(lines, "\n"))
	}
}
