package objectstore

import (
	"fmt"
	"strings"
)

const (
	// MaxName is the greatest length of an object's name in bytes.
	MaxName = 1024
	// maxElement is the greatest length of what stands between two slashes of it.
	maxElement = 255
	// Reserved begins elements of names that a store may keep for itself.
	Reserved = ".penstock"
)

// CheckOwner returns an ErrName for what can't be an owner's id.
func CheckOwner(owner string) error {
	if owner == "" || len(owner) > MaxOwner {
		return fmt.Errorf("owner of %d bytes: %w", len(owner), ErrName)
	}
	return nil
}

// CheckName returns an ErrName for what can't be an object's name in some store: so
// what one store holds, every store can. It refuses what would leave the owner's
// data as a path, what is reserved, and what may have a second spelling.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("object name of %d bytes: %w", len(name), ErrName)
	}
	for e := range strings.SplitSeq(name, "/") {
		switch {
		case e == "", e == ".", e == "..", len(e) > maxElement,
			strings.HasPrefix(e, Reserved), strings.ContainsAny(e, "\x00\\"):
			return fmt.Errorf("object name %.80q: %w", name, ErrName)
		}
	}
	return nil
}
