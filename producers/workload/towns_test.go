package workload

import (
	"errors"
	"strings"
	"testing"

	"penstock/infra/examples"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
)

// Users live in the towns of the parameters, where there are some.
func TestUsersLiveInTheTownsOfTheParameters(t *testing.T) {
	p, err := Decode(examples.WorldDay, "world-day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.Scale.Peak = 200_000
	p.Reads.PerWrite = 10
	g := mustNew(t, p)
	used := map[string]int{}
	var r event.Request
	for g.Next(&r) == nil {
		name := ""
		for _, town := range p.Places.Towns {
			if sphere.Km(town.Lat, town.Lon, float64(r.Lat), float64(r.Lon)) <= p.Places.JitterKm*1.001 {
				name = town.Name
			}
		}
		if name == "" {
			t.Fatalf("user %s is at %v %v, in no town", r.User, r.Lat, r.Lon)
		}
		used[name]++
	}
	if len(used) < len(p.Places.Towns)/2 {
		t.Errorf("users of %d towns ask, expected most of the %d", len(used), len(p.Places.Towns))
	}
}

func TestTownsAreChecked(t *testing.T) {
	bad := strings.Replace(string(examples.WorldDay), "{name: Osaka, lat: 34.69, lon: 135.50, population: 19305, offset: 540}",
		"{name: Osaka, lat: 134.69, lon: 135.50, population: 0, offset: 5400}", 1)
	_, err := Decode([]byte(bad), "world.yaml")
	if !errors.Is(err, ErrParams) {
		t.Fatalf("got %v, expected ErrParams", err)
	}
	for _, want := range []string{"places.towns[1].lat: got 134.69", "places.towns[1].population: got 0", "places.towns[1].offset: got 5400"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, expected it to name %q", err, want)
		}
	}
}
