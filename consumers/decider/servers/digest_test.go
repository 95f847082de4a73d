package servers

import (
	"bytes"
	"testing"
)

// TestSnapshotsLeaveTheDigestAsItIs: a digest that a snapshot changes, where it is written
// or where it is read, is of no use to either, and serve never starts again.
func TestSnapshotsLeaveTheDigestAsItIs(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{None, Penalty, Forecast} {
		sites := []Site{{Name: "east", Zones: []Zone{{Name: "a", Servers: []Server{{Name: "a:1"}, {Name: "a:2"}}}}}}
		p, err := New(Config{Policy: policy, Sites: sites})
		if err != nil {
			t.Fatal(err)
		}
		before := p.Digest()
		var b bytes.Buffer
		if err := p.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(p.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if written, read := p.Digest(), again.Digest(); written != before || read != before {
			t.Errorf("policy %s: %s before the snapshot, %s where it was written, %s where it was read", policy, before, written, read)
		}
	}
}
