package doctor

import (
	"fmt"
	"os"
	"path/filepath"

	"penstock/pipeline/config"
	"penstock/pipeline/report"
)

// Free space below which a disk is looked at, and is taken for full.
const (
	freeLook   = 70_000_000_000 // EVENTS and WINDOWS at their bounds (DESIGN §3)
	freeBroken = 1_000_000_000
)

// disk looks at the space for what this machine keeps.
func (x *examination) disk() {
	if x.State != "" {
		x.space("state "+x.State, x.State, freeLook)
	}
	if x.Config == nil || x.Stores == nil {
		return
	}
	for _, s := range x.Config.Sites {
		if st, err := config.ParseStore(s.Store); err == nil && st.Kind == "dir" {
			x.space("store of "+s.Name, st.URL, 10*freeBroken)
		}
	}
}

// space looks at the file system of a folder, or of the one that it would be
// made in.
func (x *examination) space(what, dir string, look int64) {
	at := dir
	for {
		if _, err := os.Stat(at); err == nil {
			break
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	free, err := freeBytes(at)
	hint := "what cannot be stored is refused, spooled, and at last dropped with a reason"
	switch {
	case err != nil:
		x.add("disk", what, Unknown, err.Error(), "")
		return
	case free < freeBroken:
		x.add("disk", what, Broken, report.Bytes(free)+" free", hint)
		return
	case free < look:
		x.add("disk", what, Look, fmt.Sprintf("%s free, of %s that it may come to need", report.Bytes(free), report.Bytes(look)), hint)
	default:
		x.fine("disk", what, "%s free", report.Bytes(free))
	}
	if at != dir {
		return
	}
	if err := writable(dir); err != nil {
		x.add("disk", what, Broken, err.Error(), "this user must own the folder")
	}
}

// writable makes a file in a folder and removes it.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	return nil
}
