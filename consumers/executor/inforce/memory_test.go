package inforce

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

// TestTheFileKeepsTables over a restart without a bus, until their ttl is over, and what
// the bus says comes before it.
func TestTheFileKeepsTables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tables.json")
	time0 := clock.NewManual(began)
	s := steer(t, nil, file, time0)
	if some, err := s.target.Restore(); some || err != nil {
		t.Errorf("no file: %v, %v", some, err)
	}
	s.apply(order("here", 5, control.Act, "10m", "a"), began)
	s.apply(order("there", 7, control.Act, "1m", "b"), began)
	s.run()
	time0.Advance(time.Minute)
	s = steer(t, nil, file, time0)
	if some, err := s.target.Restore(); !some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	s.resume()
	s.expect("after a restart", "a", "all")
	if h, _ := s.of["here"].Held(); h.Epoch != 5 || !h.Until.Equal(began.Add(10*time.Minute)) {
		t.Errorf("%+v", h)
	}
	if s.counts.n["rejected/held-ttl-over"] != 1 {
		t.Errorf("%v", s.counts.n)
	}
	// A new bus begins anew; its first table is no older one.
	s.apply(order("here", 1, control.Act, "10m", "c"), began)
	s.expect("a new bus", "c", "all", "here 1 done")

	s = steer(t, past{{order("here", 6, control.Act, "10m", "d"), began}}, file, time0)
	if some, err := s.target.Restore(); !some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	s.expect("before the bus", "a", "all")
	s.resume()
	s.expect("by the bus", "d", "all")
	time0.Advance(10 * time.Minute)
	s.target.look()
	s.run()
	if b, err := os.ReadFile(file); err != nil || string(b) != "[]" {
		t.Errorf("the file of defaults: %s, %v", b, err)
	}
}

// TestAFileThatCanNotBeWritten is counted and tried again.
func TestAFileThatCanNotBeWritten(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	s := steer(t, nil, filepath.Join(folder, "tables.json"), clock.NewManual(began))
	s.apply(order("here", 5, control.Act, "10m", "a"), began)
	s.target.keep()
	if s.counts.n["retried/held-file"] != 1 {
		t.Errorf("%v", s.counts.n)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.target.keep()
	if b, err := os.ReadFile(filepath.Join(folder, "tables.json")); err != nil || !strings.Contains(string(b), `"Epoch":5`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestAFileThatIsBroken holds nothing up, and what is good in it comes into force.
func TestAFileThatIsBroken(t *testing.T) {
	t.Parallel()
	table := func(site, on string) string {
		return `{"Scope":"` + site + `","Epoch":4,"Until":"2026-03-01T13:00:00Z","Table":{"on":[` + on + `]}}`
	}
	for name, tc := range map[string]struct {
		body  string
		some  bool
		err   error
		here  string
		count string
	}{
		"empty":      {"", false, ErrFile, "all", "rejected/held-file"},
		"whole":      {"[" + table("here", `"a"`) + "]", true, nil, "a", ""},
		"one is bad": {"[" + table("there", "") + "," + table("here", `"a"`) + "]", true, errTable, "a", "rejected/held"},
		"a gone one": {"[" + table("gone", `"a"`) + "]", false, nil, "all", "rejected/held-site-gone"},
	} {
		file := filepath.Join(t.TempDir(), "tables.json")
		if err := os.WriteFile(file, []byte(tc.body), 0o600); err != nil {
			t.Fatal(err)
		}
		s := steer(t, nil, file, clock.NewManual(began))
		if some, err := s.target.Restore(); some != tc.some || !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, %v", name, some, err)
		}
		s.expect(name, tc.here, "all")
		if tc.count != "" && s.counts.n[tc.count] != 1 || tc.count == "" && len(s.counts.n) > 0 {
			t.Errorf("%s is counted as %v", name, s.counts.n)
		}
	}
}
