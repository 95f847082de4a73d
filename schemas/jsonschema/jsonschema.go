// Package jsonschema publishes the JSON Schemas (draft 2020-12) of what travels
// as JSON, for those who write or read it in other languages: decision, command,
// outcome, location, operator and commit, the JSON form of rows of request/1 and
// gauge/1, and split, the answer to who asks for a split over HTTP. What is only on the bus in columns is described by
// event.RequestFields instead.
//
// The schemas and the decoders of schemas/control and schemas/window refuse the
// same messages, but for what a schema cannot say (a length in bytes, a start
// before its end) and for unknown fields, which both let pass (schemas/README.md
// has the rule). The corpus of schemas/corpus shows it.
package jsonschema

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.json
var files embed.FS

// ErrUnknown is returned by Get for a name that is not among Names.
var ErrUnknown = errors.New("no such schema")

// Names lists the schemas, ascending.
func Names() []string {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(fmt.Sprintf("jsonschema: embedded files: %v", err)) // Embedded by the compiler: it cannot fail.
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	return names
}

// Get returns the schema of that name as JSON. The error wraps ErrUnknown and
// lists the names there are.
func Get(name string) ([]byte, error) {
	b, err := files.ReadFile(name + ".json")
	if err != nil {
		return nil, fmt.Errorf("schema %.40q, expected one of %s: %w", name, strings.Join(Names(), ", "), ErrUnknown)
	}
	return b, nil
}

// ID returns the identifier of a schema, as in its $id.
func ID(name string) string { return "urn:penstock:" + name + ":1" }
