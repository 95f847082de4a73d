package accesslog

import (
	"strings"

	"penstock/infra/errorkind"
)

// haproxyKinds tells what the tags of HAProxy hold where it matters for where
// they end (its configuration manual, §8.2).
var haproxyKinds = map[string]kind{
	"ci": kindHost, "fi": kindHost, "bi": kindHost, "si": kindHost, "r": kindRequest, "ST": kindStatus,
	"hr": kindCaptures, "hs": kindCaptures,
}

var haproxyTimes = map[string]string{
	"t": "%d/%b/%Y:%H:%M:%S.%3f", "tr": "%d/%b/%Y:%H:%M:%S.%3f",
	"T": "%d/%b/%Y:%H:%M:%S %z", "Tl": "%d/%b/%Y:%H:%M:%S %z", "trg": "%d/%b/%Y:%H:%M:%S %z", "trl": "%d/%b/%Y:%H:%M:%S %z",
}

// compileHAProxy reads a log-format string. A field is called as its tag, a
// sample expression as the text in its brackets.
func compileHAProxy(format string) (*textLayout, error) {
	format = strings.TrimSpace(format)
	if rest, ok := strings.CutPrefix(format, "log-format "); ok {
		format = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(format, `"`) && strings.HasSuffix(format, `"`) && len(format) > 1 {
		format = strings.ReplaceAll(format[1:len(format)-1], `\"`, `"`)
	} else {
		format = strings.ReplaceAll(format, `\ `, " ")
	}
	b, always := builder{}, ""
	for i := 0; i < len(format); {
		if format[i] != '%' {
			b.haproxyLiteral(format[i : i+1])
			i++
			continue
		}
		name, flags, next := haproxyTag(format, i+1)
		i = next
		switch name {
		case "":
			return nil, errorkind.Errorf(ErrFormat, "%.40q is no tag", format[max(0, next-1):])
		case "%":
			b.literal("%")
			continue
		case "o":
			always = flags
			continue
		}
		if err := b.haproxyField(name, always+flags, format[next:]); err != nil {
			return nil, err
		}
	}
	return b.layout()
}

// haproxyTag reads a tag behind its percent sign: flags in braces, and letters
// or an expression in brackets.
func haproxyTag(s string, pos int) (name, flags string, next int) {
	if pos < len(s) && s[pos] == '%' {
		return "%", "", pos + 1
	}
	// A name in parentheses and a type may stand before.
	if pos < len(s) && s[pos] == '(' {
		n := strings.IndexByte(s[pos:], ')')
		if n < 0 {
			return "", "", pos
		}
		pos += n + 1
	}
	if pos < len(s) && s[pos] == '{' {
		n := strings.IndexByte(s[pos:], '}')
		if n < 0 {
			return "", "", pos
		}
		flags, pos = s[pos+1:pos+n], pos+n+1
	}
	if pos < len(s) && s[pos] == '[' {
		depth := 0
		for n := pos; n < len(s); n++ {
			switch s[n] {
			case '[':
				depth++
			case ']':
				depth--
			}
			if depth == 0 {
				return s[pos+1 : n], flags, n + 1
			}
		}
		return "", "", pos
	}
	for next = pos; next < len(s) && isAlphanumeric(s[next]); next++ {
	}
	return s[pos:next], flags, next
}

// haproxyField adds a tag's field, in quotes if its flags say so.
func (b *builder) haproxyField(name, flags, rest string) error {
	e := element{name: name, kind: haproxyKinds[name], escape: escapeHash}
	e.maybe = strings.LastIndex(flags, "+Q") > strings.LastIndex(flags, "-Q")
	if pattern, ok := haproxyTimes[name]; ok {
		f, err := compileTime(pattern)
		if err != nil {
			return err
		}
		e.time = f
	}
	e.last = e.kind == kindHost && strings.HasPrefix(rest, ":")
	return b.field(e)
}

// haproxyLiteral adds a byte. HAProxy writes no blank at the beginning, and one
// where there would be several.
func (b *builder) haproxyLiteral(s string) {
	if s == " " {
		n := len(b.elements)
		if len(b.between) <= n || b.between[n] == "" {
			if n == 0 {
				return
			}
		} else if strings.HasSuffix(b.between[n], " ") {
			return
		}
	}
	b.literal(s)
}
