package directory

import (
	"bytes"
	"strconv"

	"penstock/schemas/control"
)

// maxSite bounds what quick takes for a site; a longer one is decided elsewhere.
const maxSite = 255

// decode reads an entry. Nearly all are spelled as control.Encode spells them, and
// reading those here takes a tenth of the time and makes no garbage: at a start
// there are as many as owners. All others, good or bad, are control's.
func (d *Directory) decode(body []byte) (p place, site string, err error) {
	if p, name, ok := quick(body); ok {
		// A site that is known needs no string of its own.
		if i, known := d.names.number(name); known {
			p.site = i
			return p, d.names.of(i), nil
		}
	}
	l, err := control.DecodeLocation(body)
	if err != nil {
		return place{}, "", err
	}
	p = place{version: l.Version, pinned: l.Pinned, since: l.Since, state: stateOf(string(l.State))}
	return p, l.Site, nil
}

// quick reads an entry as it is usually spelled; false for any other, which may be
// good or bad.
func quick(b []byte) (p place, site []byte, ok bool) {
	if site, b, ok = text(b, `{"site":"`); !ok || len(site) == 0 || len(site) > maxSite {
		return p, nil, false
	}
	if b, ok = bytes.CutPrefix(b, []byte(`"version":`)); !ok {
		return p, nil, false
	}
	comma := bytes.IndexByte(b, ',')
	if comma <= 0 || b[0] == '0' && comma > 1 || b[0] == '+' {
		return p, nil, false
	}
	var err error
	if p.version, err = strconv.ParseUint(string(b[:comma]), 10, 64); err != nil {
		return p, nil, false
	}
	state, b, ok := text(b[comma+1:], `"state":"`)
	if p.state = stateOf(string(state)); !ok || int(p.state) == len(states) {
		return p, nil, false
	}
	if b, ok = bytes.CutPrefix(b, []byte(`"since":"`)); !ok {
		return p, nil, false
	}
	quote := bytes.IndexByte(b, '"')
	if quote < 0 || p.since.UnmarshalText(b[:quote]) != nil {
		return p, nil, false
	}
	switch string(b[quote+1:]) {
	case "}":
	case `,"pinned":true}`:
		p.pinned = true
	default:
		return p, nil, false
	}
	return p, site, true
}

// text reads a string of printable ASCII without escapes that follows some text,
// and the comma after it.
func text(b []byte, before string) (value, rest []byte, ok bool) {
	if len(b) < len(before) || string(b[:len(before)]) != before {
		return nil, nil, false
	}
	b = b[len(before):]
	for i, c := range b {
		switch {
		case c == '"':
			if i+1 == len(b) || b[i+1] != ',' {
				return nil, nil, false
			}
			return b[:i], b[i+2:], true
		case c < ' ' || c >= 0x7f || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// stateOf returns the number of a state, that after the last for any other.
func stateOf(s string) uint8 {
	for i := range states {
		if string(states[i]) == s {
			return uint8(i)
		}
	}
	return uint8(len(states))
}
