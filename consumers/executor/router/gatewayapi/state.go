package gatewayapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"penstock/infra/shares"
	"penstock/infra/wholefile"
)

// memory is what outlives the process.
type memory struct {
	// First are the weights that rules had before they were first touched, by the
	// rule's id and the site.
	First    map[string]map[string][]int64 `json:"first"`
	Draining []shares.Replica              `json:"draining"`
}

// recall reads the state file; one that isn't there yet holds nothing.
func recall(name string) (m memory, err error) {
	m.First = map[string]map[string][]int64{}
	if name == "" {
		return m, nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrState, name, err)
	}
	if m.First == nil {
		m.First = map[string]map[string][]int64{}
	}
	return m, nil
}

// keep writes the state file, whole or not at all.
func (m memory) keep(name string) error {
	if name == "" {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := wholefile.Write(name, b, 0o600); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}
