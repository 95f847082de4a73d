package accesslog

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"penstock/infra/errorkind"
)

//go:embed formats/*.yaml
var formatFiles embed.FS

// registry compiles the formats that Penstock knows when they are first asked
// for: most programs need one or none.
var registry = struct {
	sync.Mutex
	compiled map[string]*Format
	names    []string
}{compiled: make(map[string]*Format)}

// Names lists the formats that Penstock knows, in the order in which they are
// tried.
func Names() []string {
	entries, err := fs.ReadDir(formatFiles, "formats")
	if err != nil {
		panic(err) // cannot be: the folder is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	slices.Sort(names)
	return names
}

// Named returns a format that Penstock knows. The error wraps ErrFormat and lists
// the names.
func Named(name string) (*Format, error) {
	registry.Lock()
	f := registry.compiled[name]
	registry.Unlock()
	if f != nil {
		return f, nil
	}
	b, err := formatFiles.ReadFile("formats/" + name + ".yaml")
	if err != nil {
		return nil, errorkind.Errorf(ErrFormat, "format %.60q, expected %s, a .yaml file, or %s and a format string",
			name, strings.Join(Names(), ", "), strings.Join(dialectPrefixes(), ", "))
	}
	if f, err = decode(b, name, origin{place: "format " + name, known: true}); err != nil {
		return nil, err
	}
	registry.Lock()
	registry.compiled[name] = f
	registry.Unlock()
	return f, nil
}

// dialectPrefixes are what a format string begins with.
func dialectPrefixes() []string {
	var out []string
	for _, d := range dialects {
		out = append(out, d.name+":")
	}
	return out
}

// ofString compiles a format string such as nginx:'$remote_addr …'.
func ofString(name string) (*Format, bool, error) {
	prefix, text, ok := strings.Cut(name, ":")
	if !ok {
		return nil, false, nil
	}
	var s Shape
	d := &Definition{Name: name}
	switch prefix {
	case "text":
		s.Text, d.Like = text, "combined"
	case "nginx":
		s.NGINX = text
	case "apache":
		s.Apache = text
	case "haproxy":
		s.HAProxy = text
	case "envoy":
		s.Envoy = text
	default:
		return nil, false, nil
	}
	if strings.TrimSpace(text) == "" {
		return nil, false, errorkind.Errorf(ErrFormat, "format %s: no field in it", name)
	}
	d.Lines = []Shape{s}
	f, err := compile(d, origin{place: "format " + name})
	return f, true, err
}
