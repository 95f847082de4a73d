package accesslog

import (
	"bytes"
	"strings"

	"github.com/valyala/fastjson"
)

// jsonPath is where a field stands in an object: under its name, or, if that has
// dots, along a path.
type jsonPath struct {
	name string
	path []string // nil: a plain name
}

func jsonPaths(names []string) []jsonPath {
	out := make([]jsonPath, len(names))
	for i, n := range names {
		out[i].name = n
		if strings.Contains(n, ".") {
			out[i].path = strings.Split(n, ".")
		}
	}
	return out
}

// cutJSON takes the fields that the mapping names out of an object.
func (v *variant) cutJSON(line []byte) (int, *LineError) {
	if len(line) == 0 || line[0] != '{' {
		if line = bytes.TrimLeft(line, " \t"); len(line) == 0 || line[0] != '{' {
			if v.quiet {
				return 0, errQuiet
			}
			return 0, lineError("object", 1, line, "a JSON object")
		}
	}
	root, err := v.json.ParseBytes(line)
	if err != nil {
		return 0, lineError("object", 1, line, "a JSON object ("+jsonFault(err)+")")
	}
	v.root = root
	v.numbers = v.numbers[:0]
	for i := range v.paths {
		p := &v.paths[i]
		value := root.Get(p.name)
		if value == nil && p.path != nil {
			value = root.Get(p.path...)
		}
		v.fields[i] = v.jsonValue(value)
	}
	return len(v.fields), nil
}

// jsonFault is the parser's word without what it repeats of the line.
func jsonFault(err error) string {
	text := err.Error()
	if n := strings.Index(text, "; unparsed tail"); n >= 0 {
		text = text[:n]
	}
	return strings.ToValidUTF8(text[:min(len(text), 2*maxGot)], "?")
}

// jsonValue returns a value as text: of a list its first element, of an object
// its JSON. nil is no value at all, an empty one null.
func (v *variant) jsonValue(value *fastjson.Value) []byte {
	if value == nil {
		return nil
	}
	switch value.Type() {
	case fastjson.TypeString:
		b, err := value.StringBytes()
		if err != nil || b == nil {
			return missingField
		}
		return b
	case fastjson.TypeNull:
		return missingField
	case fastjson.TypeArray:
		list, err := value.Array()
		if err != nil || len(list) == 0 || list[0].Type() == fastjson.TypeArray {
			return missingField
		}
		return v.jsonValue(list[0])
	}
	from := len(v.numbers)
	v.numbers = value.MarshalTo(v.numbers)
	return v.numbers[from:]
}

// Cut splits a line into its first record and the rest: of a format in JSON
// several objects may stand on one line, with nothing or blanks between them. A
// line of any other format is one record. An object that is not closed, or
// anything else, is a record to its end.
func (p *Parser) Cut(line []byte) (record, rest []byte) {
	if len(line) == 0 || line[0] != '{' && line[0] != ' ' && line[0] != '\t' {
		return line, nil
	}
	for _, v := range p.variants {
		if v.shape.kind == shapeJSON {
			object := bytes.TrimLeft(line, " \t")
			if len(object) == 0 || object[0] != '{' {
				return line, nil
			}
			end := objectEnd(object)
			return object[:end], bytes.TrimLeft(object[end:], " \t\r")
		}
	}
	return line, nil
}

// objectEnd returns the position behind the object that b begins with, or b's
// length if it isn't closed.
func objectEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := quoteEnd(b, i+1)
			if n < 0 {
				return len(b)
			}
			i = n
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}
