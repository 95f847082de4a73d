package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// flushes publishes commits without panes on a bus with two partitions and
// returns its client.
func flushes(t *testing.T, commits ...window.Commit) *bus.Client {
	t.Helper()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 2 })
	client := bustest.Client(t, b)
	for i, c := range commits {
		c.Flush = fmt.Sprintf("flush-%d", i)
		body, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Publish(t.Context(), bus.Msg{
			Subject: subject.Windows(c.Group, c.Partition), Data: body,
			Header: map[string][]string{event.HeaderSchema: {window.CommitSchema}, window.HeaderFlush: {c.Flush}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return client
}

// commit is a flush of so many rows, all counted, after which the total is that.
func commit(group string, partition int, rows, total int64) window.Commit {
	return window.Commit{
		Group: group, Partition: partition, Watermark: 3600e6,
		Account: window.Account{Received: rows, Counted: rows}, Total: window.Account{Received: total, Counted: total},
	}
}

func TestAuditFindsWhatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	odd := commit(window.Owners, 0, 5, 5)
	odd.Account.Late, odd.Total.Late = 1, 1
	oddTotal := commit(window.Owners, 0, 5, 5)
	oddTotal.Total.Quarantined = 2
	for name, c := range map[string]struct {
		commits []window.Commit
		fault   string // "" for none
		trimmed bool
	}{
		"all is well": {commits: []window.Commit{
			commit(window.Owners, 0, 5, 5), commit(window.Owners, 1, 2, 2), commit(window.Owners, 0, 3, 8), commit(window.Owners, 0, 0, 8),
			commit(window.Fast, 1, 2, 2), commit(window.Fast, 0, 8, 8),
		}},
		"a flush that does not hold": {commits: []window.Commit{odd, commit(window.Fast, 0, 5, 5)}, fault: "flush flush-0: the account does not hold"},
		"a total that does not hold": {commits: []window.Commit{oddTotal}, fault: "partition 0: the account does not hold", trimmed: true},
		"a total that forgets":       {commits: []window.Commit{commit(window.Owners, 0, 5, 5), commit(window.Owners, 0, 3, 7)}, fault: "flush flush-1: its total is"},
		"a total that invents":       {commits: []window.Commit{commit(window.Owners, 0, 5, 5), commit(window.Owners, 0, 3, 9)}, fault: "flush flush-1: its total is"},
		"groups that differ":         {commits: []window.Commit{commit(window.Owners, 0, 5, 5), commit(window.Fast, 0, 4, 4)}, fault: "groups owners and fast"},
		"older flushes are gone":     {commits: []window.Commit{commit(window.Owners, 0, 5, 105), commit(window.Fast, 0, 105, 105)}, trimmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := NewAudit(t.Context(), flushes(t, c.commits...))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(a.Faults, "; "); c.fault == "" && got != "" || !strings.Contains(got, c.fault) {
				t.Errorf("faults %q, want %q", got, c.fault)
			}
			if a.Groups[0].Trimmed != c.trimmed {
				t.Errorf("trimmed %v", a.Groups[0].Trimmed)
			}
			if err := a.Err(); errors.Is(err, ErrAudit) != (c.fault != "") || a.Holds() != (c.fault == "") {
				t.Errorf("error %v", err)
			}
			var text strings.Builder
			if err := a.Print(&text); err != nil || strings.Contains(text.String(), "every event is accounted for") != (c.fault == "") {
				t.Errorf("%v, printed\n%s", err, &text)
			}
		})
	}
}
