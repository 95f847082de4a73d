package accesslog

import (
	"strings"

	"penstock/infra/errorkind"
)

// nativeKinds are the names that a text template knows; any other name is a
// field whose content is not looked at before it is mapped.
var nativeKinds = map[string]kind{
	"host": kindHost, "ident": kindIdent, "login": kindLogin, "time": kindTime, "request": kindRequest,
	"status": kindStatus, "bytes": kindBytes, "referer": kindReferer, "agent": kindAgent,
}

// compileText reads a template: field names in braces, all else is literal. A
// field in double quotes may hold what a backslash escapes.
func compileText(template string) (*textLayout, error) {
	b := builder{}
	for rest := template; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		b.literal(literal)
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			return nil, errorkind.Errorf(ErrFormat, "field %.40q is not closed", name)
		}
		if name == "" {
			return nil, errorkind.Errorf(ErrFormat, "a field without a name")
		}
		if err := b.field(element{name: name, kind: nativeKinds[name], escape: escapeC}); err != nil {
			return nil, err
		}
		rest = behind
	}
	return b.layout()
}

// builder puts a layout together from literals and fields.
type builder struct {
	between  []string // literals: before the first field, and behind each
	elements []element
}

// literal adds text that stands in each line.
func (b *builder) literal(s string) {
	if len(b.between) == len(b.elements) {
		b.between = append(b.between, "")
	}
	b.between[len(b.elements)] += s
}

// field adds a field. Two fields need a literal between them.
func (b *builder) field(e element) error {
	b.literal("")
	if n := len(b.elements); n > 0 && b.between[n] == "" {
		return errorkind.Errorf(ErrFormat, "nothing between field %s and field %s", b.elements[n-1].name, e.name)
	}
	b.elements = append(b.elements, e)
	return nil
}

// layout returns what was put together.
func (b *builder) layout() (*textLayout, error) {
	if len(b.elements) == 0 {
		return nil, errorkind.Errorf(ErrFormat, "no field in it")
	}
	b.literal("")
	l := &textLayout{prefix: b.between[0], elements: b.elements}
	for i := range l.elements {
		e := &l.elements[i]
		before := b.between[i]
		e.until = b.between[i+1]
		if e.kind == kindCaptures {
			e.until = "}" + e.until
			continue
		}
		if e.escape != escapeC && e.escape != escapeJSON || !strings.HasSuffix(before, `"`) {
			continue
		}
		if strings.HasPrefix(e.until, `"`) {
			e.quoted = true
		} else if !strings.Contains(strings.Join(b.between[i+1:], ""), `"`) {
			return nil, errorkind.Errorf(ErrFormat, "the quote of field %s is not closed", e.name)
		}
	}
	return l, nil
}
