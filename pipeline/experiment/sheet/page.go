package sheet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"

	_ "embed" // The page's template.
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("experiment").Parse(pageText))

// Page is a result as one page; pictures stand below the first table.
type Page struct {
	Title, About string
	Tables       []Table
	Pictures     []Picture
	// Plots draws more pictures. Defaults to none.
	Plots func() ([]Picture, error)
}

// HTML is the page, which loads nothing from elsewhere.
func (p *Page) HTML() ([]byte, error) {
	all := *p
	if p.Plots != nil {
		plots, err := p.Plots()
		if err != nil {
			return nil, fmt.Errorf("experiment: plots: %w", err)
		}
		all.Pictures = slices.Concat(p.Pictures, plots)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, &all); err != nil {
		return nil, fmt.Errorf("experiment: page: %w", err)
	}
	return b.Bytes(), nil
}

// JSON is a result for machines.
func JSON(result any) ([]byte, error) {
	b, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	return append(b, '\n'), nil
}

// Write writes a result for machines, NAME.json, and its page, NAME.html, into a
// folder, which it makes if it must.
func Write(dir, name string, result any, p *Page) error {
	body, err := JSON(result)
	if err != nil {
		return err
	}
	html, err := p.HTML()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	for suffix, b := range map[string][]byte{".json": body, ".html": html} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), b, 0o644); err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
	}
	return nil
}
