package workload

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestDecodeNamesEveryFaultWithItsLine(t *testing.T) {
	good, err := os.ReadFile(paperFile)
	if err != nil {
		t.Fatal(err)
	}
	lineWith := func(text, part string) string {
		for i, l := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(l), part) {
				return "day.yaml:" + strconv.Itoa(i+1) + ":"
			}
		}
		t.Fatalf("no line with %q", part)
		return ""
	}
	for _, c := range []struct {
		name, old, new string
		expect         []string // parts of the error; a line is looked up by the text after @
	}{
		{"unknown field", "seed:", "sede:", []string{"@sede", "unknown field"}},
		{"wrong type", "users: 2500", "users: many", []string{"@users"}},
		{"out of range", "users: 2500", "users: 1", []string{"@users", "users: got 1, expected 2 to 10000000"}},
		{"two faults", "own_share: 0.1", "own_share: 1.5", []string{"@own_share", "reads.own_share: got 1.5"}},
		{"nested in a list", "share: 0.60, own: 0.85", "share: 0.60, own: 0.98", []string{"friends.circles[0]", "@- {name: near"}},
		{"site that is not there", "site: us-east", "site: us-north", []string{"@site:", "us-north"}},
		{"not YAML", "version: 1", "version: [", []string{"day.yaml"}},
		{"duplicate key", "version: 1", "version: 1\nversion: 1", []string{"day.yaml:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(string(good), c.old) {
				t.Fatalf("the file has no %q", c.old)
			}
			bad := strings.Replace(string(good), c.old, c.new, 1)
			_, err := Decode([]byte(bad), "day.yaml")
			if !errors.Is(err, ErrParams) {
				t.Fatalf("got %v, expected ErrParams", err)
			}
			for _, want := range c.expect {
				if at, ok := strings.CutPrefix(want, "@"); ok {
					want = lineWith(bad, at)
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, expected it to name %q", err, want)
				}
			}
		})
	}
}

func TestValidateReturnsAllFaults(t *testing.T) {
	p := paperDay(t)
	p.Users, p.Write, p.Activity.LocalDay = 0, 0, nil
	err := p.Validate()
	for _, want := range []string{"users:", "write_bytes:", "activity.local_day:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected a fault of %s", err, want)
		}
	}
}

func TestAPeakThatNoNumberOfWritesReachesIsRefused(t *testing.T) {
	p := paperDay(t)
	p.Users, p.Friends.Degree.Most = 40, 20
	p.Scale.Peak = 10 // Less than one write.
	if _, err := New(p); !errors.Is(err, ErrParams) || !strings.Contains(err.Error(), "scale.peak_bytes") {
		t.Errorf("got %v, expected a fault of scale.peak_bytes", err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := os.ReadFile(paperFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("version: 1\nactivity: {local_day: [.nan, .inf]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data, "f")
		if err != nil && !errors.Is(err, ErrParams) {
			t.Fatalf("%v does not wrap ErrParams", err)
		}
		if err == nil && p.Validate() != nil {
			t.Fatal("Decode let a fault pass")
		}
	})
}
