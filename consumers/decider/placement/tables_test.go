package placement

import (
	"math"

	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// placeRow is the values of a row of places: one user seen n times at a place,
// as an aggregator adds them up.
func placeRow(at int64, lat, lon float64, n int64) []int64 {
	v := sphere.FromDegrees(float64(float32(lat)), float64(float32(lon)))
	nano := func(f float64) int64 { return n * int64(math.Round(f*1e9)) }
	return []int64{at, window.FromFloat32(float32(lat)), window.FromFloat32(float32(lon)), n, nano(v.X), nano(v.Y), nano(v.Z)}
}
