package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Fingerprint is what a replay's rows and cuts follow from, by name: the digest
// of its recordings, the options that change rows or cuts, the digest of the
// configuration that decisions follow from. Speed is no part of it.
type Fingerprint map[string]string

// RunID returns the run's name: a hash of all that is in the fingerprint.
func (f Fingerprint) RunID() string {
	h := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(h, "%q=%q\n", k, f[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// differences returns in what two fingerprints differ, by name.
func (f Fingerprint) differences(was Fingerprint) []string {
	names := maps.Clone(map[string]string(f))
	maps.Copy(names, was)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(names)) {
		a, hadA := was[k]
		b, hasB := f[k]
		switch {
		case !hadA:
			out = append(out, fmt.Sprintf("%s is %s and was not set", k, b))
		case !hasB:
			out = append(out, fmt.Sprintf("%s was %s and is not set", k, a))
		case a != b:
			out = append(out, fmt.Sprintf("%s was %s and is %s", k, a, b))
		}
	}
	return out
}
