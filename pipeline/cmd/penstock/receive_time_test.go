package main

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// A window of split is decided within two windows of its beginning, though exporters
// keep what has ended for seconds: by default for 5 s, as the SDKs do.
func TestWindowsOfSpansAreDecidedInTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		interval, window time.Duration
		windows          int
	}{
		{"exporters send every second", time.Second, 2 * time.Second, 1},
		{"exporters send every 5 s", 5 * time.Second, 6 * time.Second, 3},
	} {
		if c.windows > 1 && os.Getenv("PENSTOCK_WHOLE") != "1" {
			continue // It takes a minute.
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newTracing(t, c.window, "recv-a", "recv-b")
			w.receive("recv-a", "recv-b")
			web, cart := w.senderEvery(c.interval, "web", "us-east", "recv-a"), w.senderEvery(c.interval, "cart", "us-east", "recv-b")
			conn := connect(t, "nats://"+w.bus, "")
			in, err := conn.Read(t.Context(), subject.CommandsStream, []string{subject.Decisions("split")}, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			begin, deadline := time.Now(), time.After(time.Duration(c.windows+3)*15*time.Second)
			for decided := 0; decided < c.windows; {
				select {
				case <-tick.C:
					tracedCall(web, cart, 5*time.Millisecond)
				case <-deadline:
					t.Fatalf("%d windows are decided, expected %d", decided, c.windows)
				case m := <-in.C():
					var d control.Decision
					if err := json.Unmarshal(m.Data, &d); err != nil {
						t.Fatal(err)
					}
					if d.Window.Start.Before(begin) {
						continue // It began before the traffic did.
					}
					after := m.Time.Sub(d.Window.Start)
					t.Logf("window to %s decided %v after it began", d.Window.End.Format(time.TimeOnly), after.Round(time.Millisecond))
					if after > 20*time.Second {
						t.Errorf("a window is decided %v after it began, expected within two windows", after)
					}
					decided++
				}
			}
			w.receivers["recv-a"].stop()
			w.receivers["recv-b"].stop()
			if a := w.account(conn); a.Late > 0 || a.Counted == 0 {
				t.Errorf("the account is %+v, expected no late calls", a)
			}
		})
	}
}
