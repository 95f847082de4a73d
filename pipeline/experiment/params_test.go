package experiment

import (
	"errors"
	"strings"
	"testing"

	"penstock/infra/examples"
	"penstock/producers/workload"
)

func TestFaultsOfParametersAreNamed(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown field", "first_seed", "fist_seed", "fist_seed"},
		{"version", "version: 1", "version: 2", "version: got 2"},
		{"standard that isn't there", "standard: mixed", "standard: wide", `standard: got "wide"`},
		{"hours that divide no day", "hours: [1, 2, 3, 4, 6]", "hours: [5]", "sensitivity.hours: got 5"},
		{"weights", "beta: 0.7", "beta: -1", "alpha, beta"},
		{"share of a capacity", "share: 0.7", "share: 0", "clouds"},
		{"case without capacities", "capacity: [400000000, 400000000, 400000000]", "capacity: []", "MINIMAL has no capacity"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(string(examples.PlacementExperiment), c.old) {
				t.Fatalf("the file has no %q", c.old)
			}
			_, err := Decode([]byte(strings.Replace(string(examples.PlacementExperiment), c.old, c.new, 1)))
			if !errors.Is(err, ErrParams) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, expected ErrParams that names %q", err, c.want)
			}
		})
	}
}

// The standard model is the workload's own population, and the other two are
// made of its circles.
func TestFriendModelsAreMadeOfThePapersDay(t *testing.T) {
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	base, err := workload.Decode(examples.PaperDay, "paper-day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	circles := map[string]workload.Circle{}
	for _, c := range base.Friends.Circles {
		circles[c.Name] = c
	}
	if len(p.Models) != 3 {
		t.Fatalf("%d friend models, expected 3", len(p.Models))
	}
	for _, m := range p.Models {
		if m.Name == p.Standard {
			if m.Circles != nil {
				t.Errorf("the standard model %s has circles of its own", m.Name)
			}
			continue
		}
		day := m.day(base, 7)
		if len(day.Friends.Circles) != 1 || day.Seed != 7 {
			t.Fatalf("%s: %+v", m.Name, day.Friends.Circles)
		}
		got, want := day.Friends.Circles[0], circles[m.Name]
		if want.Share = 1; got != want {
			t.Errorf("%s has circle %+v, expected %+v", m.Name, got, want)
		}
		if err := day.Validate(); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}
