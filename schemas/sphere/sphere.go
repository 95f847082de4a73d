// Package sphere is the geometry of places on the globe: great circles on a
// sphere of radius 6,371 km, as DESIGN §4.1 pins it down.
//
// A place is a unit vector; distances follow from the chord, which is exact for
// near places where the cosine is not. All functions are pure; products that
// are added are rounded first, so that no fused multiply-add changes a digit
// from one machine to the next.
package sphere

import "math"

// Radius is the radius of the sphere in km.
const Radius = 6371.0

// Vector is a point on the unit sphere.
type Vector struct{ X, Y, Z float64 }

// FromDegrees returns the unit vector of a latitude and longitude in degrees.
func FromDegrees(lat, lon float64) Vector {
	phi, lambda := lat*(math.Pi/180), lon*(math.Pi/180)
	sp, cp := math.Sincos(phi)
	sl, cl := math.Sincos(lambda)
	return Vector{X: cp * cl, Y: cp * sl, Z: sp}
}

// Degrees returns the latitude and longitude of v, which need not have unit
// length. A zero vector (places that cancel out) has none: ok is false.
func (v Vector) Degrees() (lat, lon float64, ok bool) {
	h := math.Sqrt(float64(v.X*v.X) + float64(v.Y*v.Y))
	if h == 0 && v.Z == 0 {
		return 0, 0, false
	}
	return math.Atan2(v.Z, h) * (180 / math.Pi), math.Atan2(v.Y, v.X) * (180 / math.Pi), true
}

// Distance returns the great-circle distance between two unit vectors in km.
func Distance(a, b Vector) float64 {
	dx, dy, dz := a.X-b.X, a.Y-b.Y, a.Z-b.Z
	half := math.Sqrt(float64(dx*dx)+float64(dy*dy)+float64(dz*dz)) / 2
	return 2 * Radius * math.Asin(min(half, 1))
}

// Km returns the great-circle distance between two places in degrees, in km.
func Km(lat1, lon1, lat2, lon2 float64) float64 {
	return Distance(FromDegrees(lat1, lon1), FromDegrees(lat2, lon2))
}

// RTT returns the working estimate of the round trip over a distance in km, in
// ms: 0.02 ms/km + 5 ms (PAPERS §1.2, assumed there, not measured).
func RTT(km float64) float64 { return float64(0.02*km) + 5 }
