// Package catalogtest drives a catalog beside a slow model of it, for the tests of the
// catalog and of what ships it. It has no states; its failures are those of the tests.
package catalogtest

import (
	"flag"
	"fmt"
	"os"
	"time"

	"penstock/consumers/executor/coder/object"
)

// FewerChecks makes rapid run 20 checks of each property rather than 100, which are of many
// steps each, unless PENSTOCK_WHOLE asks for all.
func FewerChecks() {
	if os.Getenv("PENSTOCK_WHOLE") == "" {
		_ = flag.Set("rapid.checks", "20") // of no effect on a test binary without rapid
	}
}

// Epoch is when everything in these tests begins.
var Epoch = time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)

// Version makes a version of size bytes in n copies, the blobs in stores "s0", "s1", … under
// keys with the id and a mark.
func Version(id string, size int64, n int, mark string) *object.Version {
	shape := object.Shape{Layout: object.Spread, N: n, K: 1, Cut: 1, Segment: object.MinSegment, Size: size}
	v := &object.Version{
		Key: "k", ID: id, Time: Epoch, ETag: fmt.Sprintf("%032x", size),
		Coding: object.SpreadCoding(n, 1), Shape: shape, Sums: make([]uint64, shape.Segments()*n),
	}
	for i := range shape.Blobs() {
		v.Places = append(v.Places, object.Place{Store: fmt.Sprint("s", i), Key: "c/b/" + id + mark + "." + fmt.Sprint(i)})
	}
	return v
}
