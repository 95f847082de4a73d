package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"penstock/infra/objectstore"
	"penstock/schemas/subject"
)

const (
	// maxElement is how long a piece of an encoded owner may be. File systems
	// allow 255 bytes; the rest is room for a tilde and for the careful.
	maxElement = 200
	// more ends every piece but the last. It is no character of an encoded name.
	more = "~"
	// ours begins the names of files that are not objects.
	ours     = objectstore.Reserved
	markFile = ours + "-mark"
	tmpFile  = ours + "-tmp-"
	// goneFolder begins the name, at the root, of a copy that was deleted.
	goneFolder = ours + "-gone-"
)

// ownerPath returns the folder of an owner below root.
func ownerPath(root, owner string) (string, error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return "", err
	}
	token := subject.Encode(owner)
	if len(token) <= maxElement {
		return root + string(filepath.Separator) + token, nil
	}
	pieces := []string{root}
	for len(token) > maxElement {
		pieces = append(pieces, token[:maxElement]+more)
		token = token[maxElement:]
	}
	return filepath.Join(append(pieces, token)...), nil
}

// walkOwners calls fn for every folder below root that is an owner's.
func walkOwners(root, prefix string, fn func(owner, path string) error) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return fmt.Errorf("list owners: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(root, e.Name())
		if piece, ok := strings.CutSuffix(e.Name(), more); ok {
			if len(piece) != maxElement {
				continue
			}
			if err := walkOwners(path, prefix+piece, fn); err != nil {
				return err
			}
			continue
		}
		owner, err := subject.Decode(prefix + e.Name())
		if err != nil {
			continue // foreign
		}
		if want, err := ownerPath("", owner); err != nil || filepath.Base(want) != e.Name() {
			continue // a spelling of ours in a place that isn't its own
		}
		if err := fn(owner, path); err != nil {
			return err
		}
	}
	return nil
}
