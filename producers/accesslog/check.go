package accesslog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"penstock/infra/errorkind"
)

// check finds faults of the mapping, all of them, by binding it to each shape.
func (f *Format) check(d *Definition, from origin) error {
	var faults []error
	add := func(path string, err error) { faults = append(faults, fmt.Errorf("%s: %w", from.at(path), err)) }
	for _, name := range slices.Sorted(maps.Keys(d.Columns)) {
		if !isColumn(name) {
			add("columns", errorkind.Errorf(ErrFormat, "columns: %.40s is none, expected one of %s", name, columnList()))
		}
	}
	for i, s := range f.shapes {
		if s.kind == shapeDelimited && s.names == nil {
			continue // bound when the header is there
		}
		if _, err := f.bind(s, s.names); err != nil {
			add(fmt.Sprintf("lines[%d]", i), fmt.Errorf("lines[%d]: %w", i, err))
		}
	}
	if names, closed := f.fields(); closed && !from.known {
		f.checkFields(d, names, add)
	}
	return errors.Join(faults...)
}

// fields lists the names that the fields of lines may have. closed is false
// where a line may name its own, as JSON and a header do.
func (f *Format) fields() (names []string, closed bool) {
	for _, s := range f.shapes {
		if s.names == nil {
			return nil, false
		}
		for _, n := range s.names {
			if n != "" && !slices.Contains(names, n) { // A group of a regexp may have no name.
				names = append(names, n)
			}
		}
	}
	return names, true
}

// checkFields refuses sources of fields that no line has: they would be without
// a value for ever, and nobody would know.
func (f *Format) checkFields(d *Definition, names []string, add func(path string, err error)) {
	for _, column := range slices.Sorted(maps.Keys(d.Columns)) {
		if !isColumn(column) {
			continue
		}
		for i, source := range d.Columns[column] {
			for _, name := range source.fields() {
				if !f.hasField(name) {
					add(fmt.Sprintf("columns.%s[%d]", column, i),
						errorkind.Errorf(ErrFormat, "columns: %s: no line has a field %.40s, expected one of %s", column, name, strings.Join(names, ", ")))
				}
			}
		}
	}
}

// hasField reports whether a name is that of a field in any shape, as slot finds
// it there.
func (f *Format) hasField(name string) bool {
	for _, s := range f.shapes {
		if (&bound{shape: s, names: s.names}).slot(name) >= 0 {
			return true
		}
	}
	return false
}

// fields lists the fields that a source names.
func (s Source) fields() []string {
	names := slices.Concat(s.From, s.Sum)
	if s.Minus != "" {
		names = append(names, s.Minus)
	}
	if s.Expr == "" {
		return names
	}
	if e, err := compileExpression(s.Expr); err == nil { // An expression with a fault is told of by bind.
		names = append(names, e.names...)
	}
	return names
}
