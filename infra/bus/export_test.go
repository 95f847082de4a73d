package bus

// CheckVersion is for the table of versions.
var CheckVersion = checkVersion

// Passed is the sequence up to which a reader has seen all of its own.
func Passed(r *Reader) uint64 { return r.passed.Load() }
