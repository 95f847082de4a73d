package accesslog

import (
	"bytes"
	"math"
	"strconv"

	"penstock/schemas/event"
	"penstock/schemas/scalar"
)

// outcome of a source, for Explain.
type outcome uint8

const (
	outcomeSet     outcome = iota
	outcomeAbsent          // the line has no such field
	outcomeMissing         // there is no value in it
	outcomeNoMatch         // the rule of its mapping has no value for it
	outcomeWrong           // not of the column's kind
)

// fill sets the columns of r from the fields of v. It returns false where a
// value is not of its column's kind, or nothing says the time.
func (p *Parser) fill(v *variant, r *event.Request) bool {
	*r = event.NewRequest(0)
	p.row = rowState{total: event.NullInt}
	rules := v.bound.rules
	for i := range rules {
		rule := &rules[i]
		for j := range rule.sources {
			s := &rule.sources[j]
			value, out := p.value(v, rule.column, s)
			if out == outcomeSet && !p.set(r, rule.column, s, value) {
				out = outcomeWrong
			}
			if p.trace != nil {
				p.trace(rule.column, s, value, out)
			}
			if out == outcomeWrong {
				return false
			}
			if out == outcomeSet {
				break
			}
		}
	}
	return p.row.timed
}

// value returns what a source has for its column.
func (p *Parser) value(v *variant, c column, s *source) ([]byte, outcome) {
	if s.constant != nil {
		return s.constant, outcomeSet
	}
	var b []byte
	if s.slot >= 0 {
		b = v.fields[s.slot]
		if b == nil {
			return nil, outcomeAbsent
		}
		switch {
		case c == colStatus:
			p.row.asked = true
		case c.needsRow():
			p.row.anyField = true
			p.row.asked = p.row.asked || c != colTarget && c != colOwner
		}
		if isDash(b) || len(b) == 0 && !s.emptyCount || s.null && string(b) == "null" {
			if s.lookup == nil || s.lookup[string(b)] == "" {
				return b, outcomeMissing
			}
		}
		if s.escape != escapeNone && bytes.IndexByte(b, escapeByte[s.escape]) >= 0 {
			p.scratch = unescape(p.scratch[:0], b, s.escape)
			b = p.scratch
		}
	}
	if s.direct {
		return b, outcomeSet
	}
	return p.derive(v, c, s, b)
}

var escapeByte = [...]byte{escapeNone: 0, escapeC: '\\', escapeJSON: '\\', escapeHash: '#'}

func isDash(b []byte) bool { return len(b) == 1 && b[0] == '-' }

// derive takes a value through the steps of its source.
func (p *Parser) derive(v *variant, c column, s *source, b []byte) ([]byte, outcome) {
	if s.first || s.last {
		b = pick(b, s.last)
		if scalar.IsMissing(b) {
			return b, outcomeMissing
		}
	}
	for _, m := range s.missing {
		if string(b) == m {
			return b, outcomeMissing
		}
	}
	if s.minus >= 0 || len(s.sum) > 0 {
		return p.combined(v, c, s, b)
	}
	if s.memo == nil {
		return b, outcomeSet
	}
	d, ok := s.memo[string(b)]
	if !ok {
		d = s.work(b, v.fields)
		if len(b) <= event.MaxID && (s.expr == nil || s.expr.alone()) {
			if len(s.memo) >= maxCached {
				clear(s.memo)
			}
			s.memo[string(b)] = d
		}
	}
	p.scratch = append(p.scratch[:0], d.text...)
	switch d.state {
	case missing:
		return b, outcomeNoMatch
	case failed:
		return p.scratch, outcomeWrong
	}
	return p.scratch, outcomeSet
}

// work applies match, lookup and expr.
func (s *source) work(b []byte, fields [][]byte) derived {
	if s.match != nil {
		at := s.match.FindSubmatchIndex(b)
		if at == nil {
			return derived{state: missing}
		}
		if len(at) > 2 {
			var groups []byte
			for i := 2; i+1 < len(at); i += 2 {
				if at[i] >= 0 {
					groups = append(groups, b[at[i]:at[i+1]]...)
				}
			}
			b = groups
		} else {
			b = b[at[0]:at[1]]
		}
	}
	if s.lookup != nil {
		if to, ok := s.lookup[string(b)]; ok {
			b = []byte(to)
		} else if to, ok := s.lookup["*"]; ok {
			b = []byte(to)
		}
	}
	if s.expr != nil {
		d := s.expr.run(b, fields)
		if d.state != present || d.text != "" {
			return d
		}
		b = nil
	}
	if scalar.IsMissing(b) {
		return derived{state: missing}
	}
	return derived{text: string(b)}
}

// combined takes one number off another, or adds some up. The outcome is text
// again: microseconds of a time span, else a whole number.
func (p *Parser) combined(v *variant, c column, s *source, b []byte) ([]byte, outcome) {
	total := int64(0)
	if s.minus >= 0 {
		other := v.fields[s.minus]
		if s.first || s.last {
			other = pick(other, s.last)
		}
		if scalar.IsMissing(other) || s.isMissing(other) {
			return b, outcomeMissing
		}
		whole, ok1 := amount(c, s, b)
		part, ok2 := amount(c, s, other)
		if !ok1 || !ok2 {
			return b, outcomeWrong
		}
		total = whole - part
	} else {
		some := false
		for _, i := range s.sum {
			term := v.fields[i]
			if scalar.IsMissing(term) || s.isMissing(term) {
				continue
			}
			n, ok := amount(c, s, term)
			if !ok || n > math.MaxInt64-total && total > 0 {
				return term, outcomeWrong
			}
			some = true
			total += n
		}
		if !some {
			return nil, outcomeMissing
		}
	}
	p.scratch = strconv.AppendInt(p.scratch[:0], total, 10)
	if c.isDelay() {
		p.scratch = append(p.scratch, "us"...)
	}
	return p.scratch, outcomeSet
}

// isMissing reports whether the source's own list says that there is no value.
func (s *source) isMissing(b []byte) bool {
	for _, m := range s.missing {
		if string(b) == m {
			return true
		}
	}
	return false
}

// amount reads a number of its column's unit.
func amount(c column, s *source, b []byte) (int64, bool) {
	if c.isDelay() {
		return parseSpan(b, s.unit)
	}
	return parseCount(b)
}

// pick returns the first or the last of a list with ", ", " : " or ";" between.
func pick(b []byte, last bool) []byte {
	if last {
		for i := len(b) - 1; i >= 0; i-- {
			if isBetween(b, i) {
				return bytes.TrimSpace(b[i+1:])
			}
		}
		return b
	}
	for i := range b {
		if isBetween(b, i) {
			return bytes.TrimSpace(b[:i])
		}
	}
	return b
}

// isBetween reports whether the byte at i stands between two values. A colon
// does only with blanks around it: addresses have colons.
func isBetween(b []byte, i int) bool {
	switch b[i] {
	case ',', ';':
		return true
	case ':':
		return i > 0 && b[i-1] == ' ' && i+1 < len(b) && b[i+1] == ' '
	}
	return false
}
