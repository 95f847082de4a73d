package accesslog

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// origin is where a definition was written, for its faults.
type origin struct {
	place string // the file's path, or "format NAME"
	text  []byte // of a file that the user has before him; nil without one
	// known says that it is one of Penstock's, whose columns hold for other lines
	// of its dialect too.
	known bool
}

// at is the place of a path such as columns.owner[1], or of the nearest parent
// that is there: with its line where there is one.
func (o origin) at(path string) string {
	if o.text == nil {
		return o.place
	}
	file, err := parser.ParseBytes(o.text, 0)
	for err == nil && path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if node, err := p.FilterFile(file); err == nil && node != nil && node.GetToken() != nil {
				return fmt.Sprintf("%s:%d", o.place, node.GetToken().Position.Line)
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return o.place
}
