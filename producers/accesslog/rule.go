package accesslog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"penstock/infra/errorkind"
	"penstock/infra/pseudonym"
	"penstock/schemas/event"
)

// rule fills a column from the first of its sources that has a value.
type rule struct {
	column  column
	sources []source
}

// source is a compiled Source whose fields are numbers of a shape.
type source struct {
	name   string // of the field, for errors; "" of a constant
	slot   int    // of the field, −1 without one
	minus  int    // −1 without one
	sum    []int
	direct bool // what stands in the field is the value

	escape     escaping
	null       bool // null is missing, as in JSON
	emptyCount bool // an empty field is a value, and a wrong one: not missing
	time       *timeFormat
	common     bool // a time of the common format, and nothing else
	unit       unit
	start      bool
	port, hash bool
	last       bool // of a list
	first      bool
	missing    []string
	none       bool // the constant is that there is no value
	match      *regexp.Regexp
	lookup     map[string]string
	expr       *expression
	constant   []byte
	// memo holds what match, lookup and expr made of values that came before;
	// all three depend on the value alone.
	memo map[string]derived
}

// derived is the outcome for a value.
type derived struct {
	text  string
	state state
}

// state of a value.
type state uint8

const (
	present state = iota
	missing
	failed // the expression did
)

// bound is a mapping bound to the fields of a shape.
type bound struct {
	shape *shape
	names []string
	rules []rule
	only  []int // the fields of the shape's conditions
	// needs says that a line without any field of the request is none.
	needs bool
	// guessed says that the names of fields are: a path alone is no request then.
	guessed bool
	// request and parts say which rules there are.
	request, method, target bool
}

// bind resolves the fields of a mapping among names. Of a JSON shape the names
// are collected.
func (f *Format) bind(s *shape, names []string) (*bound, error) {
	b := &bound{shape: s, names: slices.Clone(names), needs: s.kind == shapeJSON || s.kind == shapeDelimited}
	b.guessed = f.generic && s.kind == shapeJSON
	for c := range numColumns {
		sources := f.columns[c.String()]
		if value, ok := s.set[c.String()]; ok {
			sources = Sources{{Default: &value}}
		}
		r := rule{column: c}
		for i := range sources {
			compiled, err := b.source(c, &sources[i])
			if err != nil {
				return nil, fmt.Errorf("columns: %s: %w", c, err)
			}
			r.sources = append(r.sources, compiled...)
		}
		if len(r.sources) == 0 {
			continue
		}
		b.rules = append(b.rules, r)
		fromLine := slices.ContainsFunc(r.sources, func(s source) bool { return s.constant == nil })
		switch c {
		case colRequest:
			b.request = true
		case colMethod:
			b.method = true
		case colTarget:
			b.target = b.target || fromLine
		}
	}
	for name := range s.set {
		if !isColumn(name) {
			return nil, errorkind.Errorf(ErrFormat, "set: %.40s is no column, expected one of %s", name, columnList())
		}
	}
	for _, condition := range s.only {
		b.only = append(b.only, b.slot(condition.name))
		if b.only[len(b.only)-1] < 0 {
			return nil, errorkind.Errorf(ErrFormat, "only: no field %.40s", condition.name)
		}
	}
	return b, b.complete()
}

// complete checks that the rows have what they need.
func (b *bound) complete() error {
	has := func(c column) bool {
		return slices.ContainsFunc(b.rules, func(r rule) bool {
			return r.column == c && (r.sources[0].constant == nil || b.shape.set[c.String()] != "")
		})
	}
	if !has(colTime) {
		return errorkind.Errorf(ErrFormat, "nothing fills the column time")
	}
	if !has(colRequest) && !has(colMethod) && !has(colTarget) && !has(colOp) && !has(colOwner) && b.shape.set["class"] == "" {
		return errorkind.Errorf(ErrFormat, "nothing fills any of request, method, target, op, owner")
	}
	return nil
}

// slot returns the number of a field, −1 if the shape has none of that name.
func (b *bound) slot(name string) int {
	if b.shape.kind == shapeDelimited {
		name = lowered([]string{name})[0]
	}
	i := slices.Index(b.names, name)
	if i < 0 && b.shape.kind == shapeJSON {
		i = len(b.names)
		b.names = append(b.names, name)
	}
	return i
}

// source compiles one Source: one for each field that it names, and one for its
// default. Those whose fields the shape lacks are left out.
func (b *bound) source(c column, d *Source) ([]source, error) {
	proto, err := compileSource(c, d)
	if err != nil {
		return nil, err
	}
	var out []source
	add := func(s source) {
		if s.expr != nil {
			s.expr = s.expr.bind(b)
		}
		if s.match != nil || s.lookup != nil || s.expr != nil {
			s.memo = make(map[string]derived)
		}
		s.direct = s.minus < 0 && len(s.sum) == 0 && !s.first && !s.last && s.memo == nil && len(s.missing) == 0
		out = append(out, s)
	}
	for _, name := range d.From {
		s := proto
		if s.slot = b.slot(name); s.slot < 0 {
			continue
		}
		if d.Minus != "" {
			if s.minus = b.slot(d.Minus); s.minus < 0 {
				continue
			}
		}
		s.name, s.null = name, b.needs
		b.describe(&s)
		add(s)
	}
	for _, name := range d.Sum {
		if i := b.slot(name); i >= 0 {
			proto.sum = append(proto.sum, i)
		}
	}
	if len(proto.sum) > 0 || len(d.From) == 0 && proto.expr != nil {
		s := proto
		if len(s.sum) > 0 {
			s.name = b.names[s.sum[0]]
		}
		add(s)
	}
	if d.None {
		out = append(out, source{slot: -1, minus: -1, constant: []byte{}, none: true, direct: true})
	}
	if d.Default != nil {
		out = append(out, source{slot: -1, minus: -1, constant: []byte(*d.Default), unit: proto.unit, direct: true})
	}
	return out, nil
}

// describe takes over what the layout knows of the field.
func (b *bound) describe(s *source) {
	if b.shape.text == nil {
		s.escape = b.shape.escape
		return
	}
	e := &b.shape.text.elements[s.slot]
	s.escape, s.common = e.escape, e.kind == kindTime
	s.emptyCount = !e.quoted && e.escape == escapeC
	if s.time == nil {
		s.time = e.time
	}
}

// compileSource compiles what does not depend on a shape.
func compileSource(c column, d *Source) (source, error) {
	s := source{slot: -1, minus: -1, missing: d.Missing, lookup: d.Lookup, port: d.Port, hash: d.Hash}
	var err error
	if s.unit, err = unitByName(d.Unit); err != nil {
		return s, err
	}
	switch {
	case len(d.From) > 0 && len(d.Sum) > 0, len(d.From) == 0 && len(d.Sum) == 0 && d.Expr == "" && d.Default == nil && !d.None:
		return s, errorkind.Errorf(ErrFormat, "expected one of from, sum, expr, default, none")
	case d.None && c != colOwner && c != colUser:
		return s, errorkind.Errorf(ErrFormat, "none is for owner and user: any other column is empty without a value anyway")
	case d.None && d.Default != nil:
		return s, errorkind.Errorf(ErrFormat, "expected one of default and none")
	case (d.Minus != "" || len(d.Sum) > 0) && !c.isDelay() && c != colBytes:
		return s, errorkind.Errorf(ErrFormat, "minus and sum are for bytes and time spans")
	case d.Unit != "" && !c.isDelay() && c != colTime:
		return s, errorkind.Errorf(ErrFormat, "a unit is for times and time spans")
	case d.Hash && c != colUser, d.Port && c != colClient, (d.At != "" || d.As != "") && c != colTime:
		return s, errorkind.Errorf(ErrFormat, "hash is for user, port for client, at and as for time")
	}
	switch d.At {
	case "", "end":
	case "start":
		s.start = true
	default:
		return s, errorkind.Errorf(ErrFormat, "at: %.20q, expected start or end", d.At)
	}
	switch d.Pick {
	case "":
	case "first":
		s.first = true
	case "last":
		s.last = true
	default:
		return s, errorkind.Errorf(ErrFormat, "pick: %.20q, expected first or last", d.Pick)
	}
	if d.As != "" {
		if s.time, err = compileTime(d.As); err != nil {
			return s, err
		}
	}
	if d.Match != "" {
		if s.match, err = regexp.Compile(d.Match); err != nil {
			return s, errorkind.Errorf(ErrFormat, "match: %w", err)
		}
	}
	if d.Expr != "" {
		if s.expr, err = compileExpression(d.Expr); err != nil {
			return s, err
		}
	}
	if d.Default != nil {
		r := event.NewRequest(0)
		if !judge().set(&r, c, &source{slot: -1, minus: -1, unit: s.unit}, []byte(*d.Default)) {
			return s, errorkind.Errorf(ErrFormat, "default %s, expected %s", strconv.Quote(*d.Default), columnExpected[c])
		}
	}
	return s, nil
}

// judge returns a parser that only says whether values are of their column's
// kind.
func judge() *Parser {
	hasher, err := pseudonym.New([]byte("judge"))
	if err != nil {
		panic(err) // cannot be: there is a key
	}
	return &Parser{hasher: hasher, clients: newClients(), texts: make(map[string]string), opts: Options{OwnerDepth: 1}}
}
