package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Decode reads parameters from YAML and checks them. name stands for the file
// in errors. Unknown and repeated fields are faults. The error wraps ErrParams
// and names file, line and field of each fault.
func Decode(data []byte, name string) (Params, error) {
	var p Params
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := d.Decode(&p); err != nil {
		return Params{}, fmt.Errorf("%w: %s", ErrParams, decodeFault(name, err))
	}
	faults := p.faults()
	if len(faults) == 0 {
		return p, nil
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Params{}, fmt.Errorf("%w: %s: %w", ErrParams, name, err)
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = fmt.Errorf("%s:%d: %w", name, lineOf(file, f.path), f)
	}
	return Params{}, fmt.Errorf("%w: %w", ErrParams, errors.Join(errs...))
}

// decodeFault puts file and line before what the decoder says.
func decodeFault(name string, err error) string {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		return fmt.Sprintf("%s:%d: %s", name, ye.GetToken().Position.Line, ye.GetMessage())
	}
	return fmt.Sprintf("%s: %s", name, err)
}

// lineOf returns the line of a path such as friends.circles[1].own, or of the
// nearest parent that is there; 1 if none is.
func lineOf(file *ast.File, path string) int {
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if node, err := p.FilterFile(file); err == nil && node != nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}
