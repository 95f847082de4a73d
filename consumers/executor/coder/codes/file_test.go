package codes

import (
	"os"
	"path/filepath"
	"testing"

	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// FuzzFile restores any bytes: what comes into force gives codes that can be.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`[{"coder":"objects","epoch":4,"until":"2026-03-01T13:00:00Z","table":{"policy":"tofec","model":{"read":{},"write":{}},` +
		`"read":{"k":[2.8,0.5],"n":[9,3,1],"r_max":2},"write":{"k":[],"n":[],"r_max":1}}}]`))
	f.Add([]byte(`[{"coder":"safe","epoch":4,"until":"2026-03-01T13:00:00Z","table":{"policy":"greedy","read":{"k":[1e9],"n":[1],"r_max":1e300}}}]`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, body []byte) {
		file := filepath.Join(t.TempDir(), "coding.json")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		s := steer(t, file, clock.NewManual(began))
		some, err := s.target.Restore()
		force := false
		for _, x := range s.of {
			force = force || x.State().Epoch != 0 || !x.State().Until.IsZero()
			for backlog := range 4 {
				x.Arrived(100 * backlog)
				for _, op := range []queue.Op{queue.Read, queue.Write} {
					if c := x.Choose(op, 1+backlog); c.K < 1 || c.N < c.K || c.K > control.MaxCodingK || c.N > control.MaxCodingN || c.Hedge < 0 {
						t.Errorf("a code that can't be: %+v", c)
					}
				}
			}
		}
		if some != force {
			t.Errorf("%v is in force, and it is said: %v, %v", force, some, err)
		}
	})
}
