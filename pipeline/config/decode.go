package config

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds what is read as a configuration.
const maxFile = 4 << 20

// Load reads and checks a file. The error is Faults where the content is wrong.
func Load(path string) (*Config, error) {
	b, err := contentOf(path)
	if err != nil {
		return nil, err
	}
	return Read(path, b)
}

func contentOf(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, Faults{{File: path, Line: 1, Expected: fmt.Sprintf("a file of at most %d bytes", maxFile)}}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return b, nil
}

// Read checks the content of a file; name is for the faults.
func Read(name string, content []byte) (*Config, error) {
	cfg, _, err := read(name, content)
	return cfg, err
}

// read is Read; what was decoded knows where each field stands.
func read(name string, content []byte) (*Config, *decoder, error) {
	cfg := Default()
	d := decoder{file: name, lines: map[string]int{}}
	file, err := parser.ParseBytes(content, 0)
	if err != nil {
		return nil, nil, Faults{syntaxFault(name, err)}
	}
	if len(file.Docs) > 1 && file.Docs[1].Body != nil {
		d.fault(file.Docs[1].Body, "", "", "one YAML document")
	}
	if len(file.Docs) > 0 && file.Docs[0].Body != nil {
		d.decode(file.Docs[0].Body, "", reflect.ValueOf(&cfg).Elem())
	}
	d.faults = append(d.faults, d.meaning(&cfg)...)
	if len(d.faults) > 0 {
		sort.SliceStable(d.faults, func(i, j int) bool { return d.faults[i].Line < d.faults[j].Line })
		return nil, nil, d.faults
	}
	return &cfg, &d, nil
}

// meaning returns the faults of what could be read. What could not is empty or at
// its default, and is not named twice; nor is a site unknown that may stand in a
// list that could not be read.
func (d *decoder) meaning(cfg *Config) Faults {
	sites := slices.ContainsFunc(d.faults, func(f Fault) bool { return within(f.Path, "sites") })
	return slices.DeleteFunc(validate(cfg, d.at, d.given), func(f Fault) bool {
		return sites && (within(f.Path, "residency") || within(f.Path, "prices")) ||
			slices.ContainsFunc(d.faults, func(form Fault) bool { return within(f.Path, form.Path) })
	})
}

// within reports whether a path is another or lies below it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// syntaxFault turns the parser's error, which draws the place in several lines,
// into one fault.
func syntaxFault(name string, err error) Fault {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	f := Fault{File: name, Line: 1, Expected: "valid YAML: " + msg}
	var line, col int
	if n, _ := fmt.Sscanf(msg, "[%d:%d]", &line, &col); n == 2 {
		f.Line = line
		_, rest, _ := strings.Cut(msg, "] ")
		f.Expected = "valid YAML: " + rest
	}
	return f
}

// decoder walks the syntax tree beside the type of the configuration, so that
// every fault has its line and path and none hides the next.
type decoder struct {
	file   string
	lines  map[string]int
	faults Faults
}

func (d *decoder) at(path string, got, expected string) Fault {
	line := 0
	for p := path; ; {
		if l, ok := d.lines[p]; ok {
			line = l
			break
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	return Fault{File: d.file, Line: max(line, 1), Path: path, Got: got, Expected: expected}
}

// given reports whether the file has a field.
func (d *decoder) given(path string) bool {
	_, ok := d.lines[path]
	return ok
}

func (d *decoder) fault(n ast.Node, path, got, expected string) {
	line := 1
	if t := n.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	d.faults = append(d.faults, Fault{File: d.file, Line: line, Path: path, Got: got, Expected: expected})
}

func (d *decoder) decode(n ast.Node, path string, v reflect.Value) {
	if t := n.GetToken(); t != nil && t.Position != nil {
		if _, ok := d.lines[path]; !ok {
			d.lines[path] = t.Position.Line
		}
	}
	switch x := n.(type) {
	case *ast.NullNode:
		return
	case *ast.AnchorNode:
		d.decode(x.Value, path, v)
		return
	case *ast.TagNode, *ast.AliasNode, *ast.MergeKeyNode:
		d.fault(n, path, n.String(), "a plain value, without tags or aliases")
		return
	}
	switch v.Interface().(type) {
	case Duration, AutoDuration, Size, Rate:
		d.unit(n, path, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.fields(n, path, v)
	case reflect.Slice:
		d.sequence(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch x := n.(type) {
	case *ast.MappingNode:
		return x.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{x}, true
	}
	return nil, false
}

func (d *decoder) fields(n ast.Node, path string, v reflect.Value) {
	values, ok := pairs(n)
	if !ok {
		d.fault(n, path, n.String(), "fields: "+strings.Join(fieldNames(v.Type()), ", "))
		return
	}
	for _, p := range values {
		key := keyOf(p)
		at := join(path, key)
		i := slices.Index(fieldNames(v.Type()), key)
		if i < 0 {
			d.fault(p.Key, at, key, "one of: "+strings.Join(fieldNames(v.Type()), ", "))
			continue
		}
		if t := p.Key.GetToken(); t != nil && t.Position != nil {
			d.lines[at] = t.Position.Line
		}
		d.decode(p.Value, at, v.Field(i))
	}
}

func (d *decoder) sequence(n ast.Node, path string, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(n, path, n.String(), "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		d.decode(item, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
}

func (d *decoder) mapping(n ast.Node, path string, v reflect.Value) {
	values, ok := pairs(n)
	if !ok {
		d.fault(n, path, n.String(), "a mapping of names to values")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range values {
		item := reflect.New(v.Type().Elem()).Elem()
		d.decode(p.Value, join(path, keyOf(p)), item)
		v.SetMapIndex(reflect.ValueOf(keyOf(p)), item)
	}
}

func (d *decoder) scalar(n ast.Node, path string, v reflect.Value) {
	text, ok := scalarText(n)
	if !ok {
		d.fault(n, path, n.String(), "a single value")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			d.fault(n, path, text, "true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int:
		i, err := strconv.Atoi(text)
		if err != nil {
			d.fault(n, path, text, "a whole number")
			return
		}
		v.SetInt(int64(i))
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.fault(n, path, text, "a number")
			return
		}
		v.SetFloat(f)
	default:
		d.fault(n, path, text, "nothing here")
	}
}

func (d *decoder) unit(n ast.Node, path string, v reflect.Value) {
	text, ok := scalarText(n)
	if !ok {
		text = n.String()
	}
	var parsed any
	var err error
	switch v.Interface().(type) {
	case Duration:
		parsed, err = parseDuration(text)
	case AutoDuration:
		parsed, err = parseAutoDuration(text)
	case Size:
		var s int64
		s, err = parseSize(text)
		parsed = Size(s)
	case Rate:
		parsed, err = parseRate(text)
	}
	if err != nil {
		d.fault(n, path, text, strings.TrimPrefix(err.Error(), "expected "))
		return
	}
	v.Set(reflect.ValueOf(parsed))
}

func scalarText(n ast.Node) (string, bool) {
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		return x.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func keyOf(p *ast.MappingValueNode) string {
	if s, ok := p.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return p.Key.String()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("yaml")
	}
	return names
}
