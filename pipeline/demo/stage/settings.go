package stage

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"text/template"

	"penstock/pipeline/config"
)

// Configure writes a configuration, which must be one without faults: what a
// template makes of data.
func Configure(name string, t *template.Template, data any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	if _, err := config.Load(name); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return nil
}

// Secret is a key for one demonstration on one machine: who knows the seed knows it.
func Secret(rng *rand.Rand) string {
	b := make([]byte, 32)
	for i := range b {
		b[i] = byte(rng.UintN(256))
	}
	return hex.EncodeToString(b)
}
