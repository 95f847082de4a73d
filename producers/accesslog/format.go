package accesslog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"penstock/infra/errorkind"
)

// Format is a compiled definition. It is immutable and safe for concurrent use;
// a Parser of it is not.
type Format struct {
	name    string
	about   string
	digest  string
	generic bool
	shapes  []*shape
	columns map[string]Sources // own ones over those of the format it is like
}

// Name returns what the format is called.
func (f *Format) Name() string { return f.name }

// About says in a sentence what writes such logs; "" where its file doesn't.
func (f *Format) About() string { return f.about }

// Digest is a hash of all that rows follow from: what the file or the format
// string says, and what it takes from others.
func (f *Format) Digest() string { return f.digest }

// shapeKind says how a shape cuts its lines.
type shapeKind uint8

const (
	shapeText shapeKind = iota
	shapeRegexp
	shapeJSON
	shapeDelimited
)

// shape is a compiled Shape.
type shape struct {
	kind      shapeKind
	text      *textLayout
	rule      *regexp.Regexp
	delimited *Delimited
	separator byte     // 0: told from the header
	escape    escaping // of fields without an element of their own
	more      bool
	named     bool // holds only where the format is named
	closed    bool // any field that isn't in names is a mistake of the mapping
	names     []string
	only      []condition
	set       map[string]string
}

// condition is a field that must match for a line to be of a shape.
type condition struct {
	name string
	rule *regexp.Regexp
}

// dialect is a way to write down how lines look.
type dialect struct {
	name    string
	like    string // whose mapping holds where there is none
	text    func(Shape) string
	compile func(string) (*textLayout, error)
}

var dialects = []dialect{
	{"text", "", func(s Shape) string { return s.Text }, compileText},
	{"nginx", "nginx", func(s Shape) string { return s.NGINX }, compileNGINX},
	{"apache", "apache", func(s Shape) string { return s.Apache }, compileApache},
	{"haproxy", "haproxy", func(s Shape) string { return s.HAProxy }, compileHAProxy},
	{"envoy", "envoy", func(s Shape) string { return s.Envoy }, compileEnvoy},
}

// compile checks and compiles a definition.
func compile(d *Definition, from origin) (*Format, error) {
	f := &Format{name: d.Name, about: d.About, generic: d.Generic, columns: maps.Clone(d.Columns)}
	if len(d.Lines) == 0 {
		return nil, errorkind.Errorf(ErrFormat, "%s: no lines: say how they look", from.place)
	}
	like := d.Like
	for i, line := range d.Lines {
		s, of, err := compileShape(line)
		if err != nil {
			return nil, fmt.Errorf("%s: lines[%d]: %w", from.at(fmt.Sprintf("lines[%d]", i)), i, err)
		}
		f.shapes = append(f.shapes, s)
		// Names are only guessed where a file says none.
		if guess := s.kind == shapeJSON || s.kind == shapeDelimited; like == "" && (!guess || len(d.Columns) == 0) {
			like = of
		}
	}
	said, err := json.Marshal(d)
	if err != nil {
		return nil, errorkind.Errorf(ErrFormat, "%s: %w", from.place, err)
	}
	// A file of a user's may have the name of one of ours, and is still like it.
	if like != "" && (!from.known || like != d.Name) {
		other, err := Named(like)
		if err != nil {
			return nil, fmt.Errorf("%s: like: %w", from.at("like"), err)
		}
		said = append(said, other.digest...)
		if f.columns == nil {
			f.columns = make(map[string]Sources)
		}
		for name, sources := range other.columns {
			if _, own := f.columns[name]; !own {
				f.columns[name] = sources
			}
		}
	}
	sum := sha256.Sum256(said)
	f.digest = hex.EncodeToString(sum[:8])
	if err := f.check(d, from); err != nil {
		return nil, err
	}
	return f, nil
}

// compileShape returns the shape and the format whose mapping suits its dialect.
func compileShape(line Shape) (*shape, string, error) {
	s := &shape{more: line.More, named: line.Named, set: line.Set, delimited: line.Delimited}
	like, ways := "", 0
	for _, d := range dialects {
		text := d.text(line)
		if text == "" {
			continue
		}
		ways++
		like = d.like
		layout, err := d.compile(text)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", d.name, err)
		}
		layout.more = line.More
		s.kind, s.text, s.closed = shapeText, layout, d.like == ""
		for _, e := range layout.elements {
			s.names = append(s.names, e.name)
		}
	}
	if line.Regexp != "" {
		ways++
		rule, err := regexp.Compile(line.Regexp)
		if err != nil {
			return nil, "", errorkind.Errorf(ErrFormat, "regexp: %w", err)
		}
		s.kind, s.rule, s.names, s.closed = shapeRegexp, rule, rule.SubexpNames()[1:], true
	}
	if line.JSON {
		ways++
		s.kind, like = shapeJSON, "json"
	}
	if line.Delimited != nil {
		ways++
		s.kind, like = shapeDelimited, "table"
		if err := s.compileDelimited(line.Delimited); err != nil {
			return nil, "", err
		}
	}
	if err := s.setEscape(line.Escape); err != nil {
		return nil, "", err
	}
	if ways != 1 {
		return nil, "", errorkind.Errorf(ErrFormat, "%d ways to cut a line, expected one of text, nginx, apache, haproxy, envoy, regexp, json, delimited", ways)
	}
	for _, name := range slices.Sorted(maps.Keys(line.Only)) {
		rule, err := regexp.Compile(line.Only[name])
		if err != nil {
			return nil, "", errorkind.Errorf(ErrFormat, "only: %s: %w", name, err)
		}
		s.only = append(s.only, condition{name, rule})
	}
	return s, like, nil
}

var escapings = map[string]escaping{"none": escapeNone, "c": escapeC, "json": escapeJSON, "hash": escapeHash}

// setEscape takes over how fields are escaped, if the shape says so.
func (s *shape) setEscape(name string) error {
	if name == "" {
		return nil
	}
	escape, ok := escapings[name]
	if !ok || s.kind == shapeJSON {
		return errorkind.Errorf(ErrFormat, "escape: %.20q, expected c, json, hash or none, and not of JSON", name)
	}
	s.escape = escape
	if s.text == nil {
		return nil
	}
	for i := range s.text.elements {
		s.text.elements[i].escape = escape
		if escape == escapeNone || escape == escapeHash {
			s.text.elements[i].quoted = false
		}
	}
	return nil
}

// compileDelimited checks what separates the fields.
func (s *shape) compileDelimited(d *Delimited) error {
	switch d.Separator {
	case "":
	case "tab":
		s.separator = '\t'
	case "space":
		s.separator = ' '
	default:
		if len(d.Separator) != 1 {
			return errorkind.Errorf(ErrFormat, "separator %.20q, expected one byte, tab or space", d.Separator)
		}
		s.separator = d.Separator[0]
	}
	if len(d.Names) > 0 {
		if s.separator == 0 {
			return errorkind.Errorf(ErrFormat, "names, but no separator")
		}
		s.names, s.closed = lowered(d.Names), true
	}
	return nil
}

func lowered(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(strings.TrimSpace(n))
	}
	return out
}
