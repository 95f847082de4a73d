package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"

	_ "embed" // The page's template.
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("experiment").Parse(pageText))

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	return append(b, '\n'), nil
}

// HTML is the result as one page that loads nothing from elsewhere.
func (r *Result) HTML() ([]byte, error) {
	plots, err := r.plots()
	if err != nil {
		return nil, fmt.Errorf("experiment: plots: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{"R": r, "Plots": plots, "Tables": r.Tables()}); err != nil {
		return nil, fmt.Errorf("experiment: page: %w", err)
	}
	return b.Bytes(), nil
}

// Write writes experiment.json and experiment.html into a folder, which it makes
// if it must.
func (r *Result) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	body, err := r.JSON()
	if err != nil {
		return err
	}
	html, err := r.HTML()
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{"experiment.json": body, "experiment.html": html} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
	}
	return nil
}
