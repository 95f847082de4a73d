package accesslog

import (
	"strings"

	"penstock/infra/errorkind"
)

// apacheKinds tells what the directives of mod_log_config hold where it matters
// for where they end.
var apacheKinds = map[string]kind{
	"h": kindHost, "a": kindHost, "{c}a": kindHost, "l": kindIdent, "u": kindLogin, "t": kindTime, "r": kindRequest,
	"s": kindStatus, ">s": kindStatus, "b": kindBytes, "B": kindBytes, "O": kindBytes, "I": kindBytes, "S": kindBytes,
	"{referer}i": kindReferer, "{user-agent}i": kindAgent, "{x-forwarded-for}i": kindList,
}

// apacheLetters are the directives of mod_log_config, mod_logio (I, O, S) and
// mod_ssl (c, x), by the documentation of Apache 2.4, without those of three
// characters (^ti).
const apacheLetters = "aAbBcCDefhHiIklLmnoOpPqrRsStTuUvVxX"

// compileApache reads a LogFormat string, or the whole directive. A field is
// called as it stands there without the percent sign and the conditions: h, >s,
// {referer}i (names of headers in small letters).
func compileApache(format string) (*textLayout, error) {
	format, err := apacheString(format)
	if err != nil {
		return nil, err
	}
	b := builder{}
	for i := 0; i < len(format); {
		if format[i] != '%' {
			b.literal(format[i : i+1])
			i++
			continue
		}
		name, argument, next := apacheDirective(format, i+1)
		switch {
		case name == "%":
			b.literal("%")
		case name == "":
			return nil, errorkind.Errorf(ErrFormat, "%.40q is no directive", format[i:])
		case name == "t":
			err = b.apacheTime(argument)
		case name == "q" && len(b.elements) > 0 && len(b.between) == len(b.elements) && b.elements[len(b.elements)-1].name == "U":
			// A path and its query, with nothing between: one target.
		case name != ">s" && name[0] != '^' && !strings.Contains(apacheLetters, name):
			return nil, errorkind.Errorf(ErrFormat, "%%%s is no directive of Apache's LogFormat", name)
		default:
			if argument != "" {
				name = "{" + argument + "}" + name
			}
			e := element{name: name, kind: apacheKinds[name], escape: escapeC}
			// An address, or the name of a host that is one, before its port.
			e.last = (e.kind == kindHost || name == "v" || name == "V") && strings.HasPrefix(format[next:], ":")
			err = b.field(e)
		}
		if err != nil {
			return nil, err
		}
		i = next
	}
	return b.layout()
}

// apacheString takes the format out of a directive, or out of quotes.
func apacheString(s string) (string, error) {
	s = strings.TrimSpace(s)
	rest, directive := strings.CutPrefix(s, "LogFormat ")
	s = strings.TrimSpace(rest)
	if !directive && !strings.HasPrefix(s, `"%`) {
		return strings.ReplaceAll(s, `\"`, `"`), nil
	}
	if !directive && strings.Count(s, `"`) == strings.Count(s, `\"`)+2 && strings.HasSuffix(s, `"`) {
		return quotedParts(s)
	}
	if directive {
		// Behind the format stands its name.
		end := strings.LastIndexByte(s, '"')
		if end < 1 {
			return "", errorkind.Errorf(ErrFormat, "%.40q, expected a string in quotes", s)
		}
		return quotedParts(s[:end+1])
	}
	return strings.ReplaceAll(s, `\"`, `"`), nil
}

// apacheDirective reads a directive behind its percent sign: conditions on the
// status, < or >, an argument in braces, and the letter (or ^ and two).
func apacheDirective(s string, pos int) (name, argument string, next int) {
	for pos < len(s) && (s[pos] == '!' || s[pos] == ',' || s[pos] >= '0' && s[pos] <= '9') {
		pos++
	}
	final := false
	for pos < len(s) && (s[pos] == '<' || s[pos] == '>') {
		final = s[pos] == '>'
		pos++
	}
	if pos < len(s) && s[pos] == '{' {
		n := strings.IndexByte(s[pos:], '}')
		if n < 0 {
			return "", "", pos
		}
		argument, pos = s[pos+1:pos+n], pos+n+1
	}
	if pos >= len(s) {
		return "", "", pos
	}
	size := 1
	if s[pos] == '^' {
		size = 3 // ^ti and ^to, trailers
	}
	if pos+size > len(s) {
		return "", "", pos
	}
	name = s[pos : pos+size]
	if size == 1 && name != "%" && !isAlphanumeric(name[0]) {
		return "", "", pos
	}
	if final && name == "s" {
		name = ">s"
	}
	switch name {
	case "i", "o", "C", "^ti", "^to":
		argument = strings.ToLower(argument)
	}
	return name, argument, pos + size
}

// apacheTime adds %t in one of its forms: alone, in brackets and with a zone;
// with a unit of the time since 1970; or as strftime writes it. "begin:" and
// "end:" say which time it is.
func (b *builder) apacheTime(argument string) error {
	if argument == "" {
		b.literal("[")
		err := b.field(element{name: "t", kind: kindTime})
		b.literal("]")
		return err
	}
	name := "t"
	if rest, ok := strings.CutPrefix(argument, "begin:"); ok {
		argument = rest
	} else if rest, ok := strings.CutPrefix(argument, "end:"); ok {
		name, argument = "{end}t", rest
	}
	switch argument {
	case "":
		return b.field(element{name: name, kind: kindTime})
	case "msec", "usec":
		return b.field(element{name: name})
	case "sec":
		argument = "%s"
	case "msec_frac":
		argument = "%3f"
	case "usec_frac":
		argument = "%6f"
	}
	// A time is often written in parts, such as %{%T}t.%{msec_frac}t.
	if n := len(b.elements); n > 0 && b.elements[n-1].time != nil && b.elements[n-1].name == name {
		between := ""
		if len(b.between) > n {
			between = strings.ReplaceAll(b.between[n], "%", "%%")
		}
		f, err := compileTime(b.elements[n-1].time.pattern + between + argument)
		if err != nil {
			return err
		}
		b.elements[n-1].time, b.between = f, b.between[:n]
		return nil
	}
	f, err := compileTime(argument)
	if err != nil {
		return err
	}
	return b.field(element{name: name, time: f})
}
