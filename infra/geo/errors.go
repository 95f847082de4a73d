package geo

import (
	"errors"
	"fmt"
)

// ErrDatabase is wrapped by every error about a database's content. Nothing of
// the database was kept.
var ErrDatabase = errors.New("unusable geo database")

// fault names what is wrong in a database; line 0 is the file as a whole.
func fault(file string, line int, got, expected string) error {
	if line == 0 {
		return fmt.Errorf("%s: got %.80q, expected %s: %w", file, got, expected, ErrDatabase)
	}
	return fmt.Errorf("%s line %d: got %.80q, expected %s: %w", file, line, got, expected, ErrDatabase)
}
