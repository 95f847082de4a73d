package sphere

import (
	"math"
	"testing"
)

func TestDistancesBetweenThePapersClouds(t *testing.T) {
	type place struct{ lat, lon float64 }
	east, central, west := place{37.3719, -79.8164}, place{29.4167, -98.5}, place{37.783, -122.417}
	for _, c := range []struct {
		name string
		a, b place
		km   float64
	}{
		{"east to central", east, central, 1942},
		{"east to west", east, west, 3721},
		{"central to west", central, west, 2394},
		{"a place to itself", east, east, 0},
		{"antipodes", place{0, 0}, place{0, 180}, math.Pi * Radius},
	} {
		if got := Km(c.a.lat, c.a.lon, c.b.lat, c.b.lon); math.Abs(got-c.km) > 1 {
			t.Errorf("%s: %.1f km, expected %.0f", c.name, got, c.km)
		}
	}
}

func TestDegreesAreTheInverseOfFromDegrees(t *testing.T) {
	for lat := -89.0; lat < 90; lat += 17 {
		for lon := -179.0; lon < 180; lon += 31 {
			gotLat, gotLon, ok := FromDegrees(lat, lon).Degrees()
			if !ok || math.Abs(gotLat-lat) > 1e-9 || math.Abs(gotLon-lon) > 1e-9 {
				t.Errorf("(%v, %v) came back as (%v, %v, %v)", lat, lon, gotLat, gotLon, ok)
			}
		}
	}
	if _, _, ok := (Vector{}).Degrees(); ok {
		t.Error("a zero vector has a place")
	}
}
