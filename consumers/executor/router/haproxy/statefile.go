package haproxy

import (
	"context"

	"penstock/infra/wholefile"
)

// keepState brings the state file up to date if that is due. A failure is no
// reason to doubt what was set: it is counted, and the file is due again.
func (t *Target) keepState(ctx context.Context, due bool) {
	if t.o.StateFile == "" || !due {
		return
	}
	t.stale = true
	answer, err := t.client.ask(ctx, "show servers state")
	if err == nil {
		_, err = parseState(answer)
	}
	if err != nil {
		t.o.Metrics.Count(StateFile, "read", 1)
		return
	}
	// HAProxy may be another user.
	if err := wholefile.Write(t.o.StateFile, []byte(answer), 0o644); err != nil {
		t.o.Metrics.Count(StateFile, "write", 1)
		return
	}
	t.stale = false
}
