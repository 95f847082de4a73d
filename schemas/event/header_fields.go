package event

import (
	"fmt"
	"strconv"
	"strings"
)

// maxRun bounds a run's name: a ULID has 26 characters, a hash 64.
const maxRun = 128

// fieldParser reads header values and keeps the first error.
type fieldParser struct {
	f   Fields
	err error
}

func (p *fieldParser) int(name string, least, most int64) int64 {
	s := first(p.f, name)
	v, err := strconv.ParseInt(s, 10, 64)
	if p.err == nil && (err != nil || v < least || v > most) {
		p.err = headerError(name, s, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return v
}

func (p *fieldParser) uint(name string, least uint64) uint64 {
	s := first(p.f, name)
	v, err := strconv.ParseUint(s, 10, 63)
	if p.err == nil && (err != nil || v < least) {
		p.err = headerError(name, s, fmt.Sprintf("a whole number of at least %d", least))
	}
	return v
}

func (p *fieldParser) dropped(mark bool) []Dropped {
	var out []Dropped
	for _, s := range p.f[HeaderDropped] {
		d, ok := parseDropped(s, mark)
		if !ok {
			if p.err == nil {
				p.err = headerError(HeaderDropped, s, "first-last;rows;from;to")
			}
			return nil
		}
		out = append(out, d)
	}
	return out
}

func parseDropped(s string, mark bool) (Dropped, bool) {
	var d Dropped
	if mark {
		p, rest, ok := strings.Cut(s, ":")
		n, err := strconv.Atoi(p)
		if !ok || err != nil || n < 0 {
			return d, false
		}
		d.Partition, s = n, rest
	}
	parts := strings.Split(s, ";")
	if len(parts) != 4 {
		return d, false
	}
	a, b, ok := strings.Cut(parts[0], "-")
	first, err1 := strconv.ParseUint(a, 10, 63)
	last, err2 := strconv.ParseUint(b, 10, 63)
	rows, err3 := strconv.ParseInt(parts[1], 10, 64)
	from, err4 := strconv.ParseInt(parts[2], 10, 64)
	to, err5 := strconv.ParseInt(parts[3], 10, 64)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		ok = ok && err == nil
	}
	if !ok || first < 1 || last < first || rows < 0 || to < from || from < MinTime || to > MaxTime {
		return d, false
	}
	d.First, d.Last, d.Rows, d.From, d.To = first, last, rows, from, to
	return d, true
}

func (d Dropped) format(mark bool) string {
	s := fmt.Sprintf("%d-%d;%d;%d;%d", d.First, d.Last, d.Rows, d.From, d.To)
	if mark {
		return strconv.Itoa(d.Partition) + ":" + s
	}
	return s
}

func checkRun(run string) error {
	if run == "" || len(run) > maxRun {
		return headerError(HeaderRun, run, fmt.Sprintf("1 to %d characters", maxRun))
	}
	for i := range len(run) {
		if c := run[i]; c <= ' ' || c > '~' {
			return headerError(HeaderRun, run, "printable ASCII without spaces")
		}
	}
	return nil
}

func first(f Fields, name string) string {
	if v := f[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func headerError(name, got, expected string) error {
	return fmt.Errorf("header %s: got %.60q, expected %s: %w", name, got, expected, ErrUndecodable)
}
