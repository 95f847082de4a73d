package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrFaults is wrapped by the error of Read when the file has faults. No
// configuration is returned then.
var ErrFaults = errors.New("faults in the configuration")

// Fault is one thing that is wrong with the file.
type Fault struct {
	File     string
	Line     int
	Path     string // such as sites[1].capacity
	Got      string
	Expected string
}

func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	if f.Path != "" {
		fmt.Fprintf(&b, "%s: ", f.Path)
	}
	if f.Got != "" {
		fmt.Fprintf(&b, "got %.60q, ", f.Got)
	}
	fmt.Fprintf(&b, "expected %s", f.Expected)
	return b.String()
}

// Faults is all that is wrong with a file, in order of lines.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

func (f Faults) Unwrap() error { return ErrFaults }
