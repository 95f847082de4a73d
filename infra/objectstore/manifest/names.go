package manifest

import (
	"fmt"
	"strings"

	"penstock/infra/objectstore"
)

const (
	maxName     = 1024 // bytes of an object's name
	maxNamePart = 255
	// ours begins names that a folder keeps for itself. They are refused here
	// too, so that what one store holds every store can.
	ours = ".penstock"
)

func checkOwner(owner string) error {
	if owner == "" || len(owner) > objectstore.MaxOwner {
		return fmt.Errorf("owner of %d bytes: %w", len(owner), objectstore.ErrName)
	}
	return nil
}

// checkName refuses what package dir refuses.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("object name of %d bytes: %w", len(name), objectstore.ErrName)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "", part == ".", part == "..", len(part) > maxNamePart,
			strings.HasPrefix(part, ours), strings.ContainsAny(part, "\x00\\"):
			return fmt.Errorf("object name %.80q: %w", name, objectstore.ErrName)
		}
	}
	return nil
}

func check(owner, name string) error {
	if err := checkOwner(owner); err != nil {
		return err
	}
	return checkName(name)
}
