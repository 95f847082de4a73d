package accesslog

import (
	"time"

	"penstock/infra/errorkind"
)

// timeFormat is a compiled strftime pattern: what Apache's %{…}t and Envoy's
// %START_TIME(…)% are given.
type timeFormat struct {
	pattern string
	steps   []timeStep
}

// timeStep is a part of a time, or a byte that stands as it is.
type timeStep struct {
	verb byte // 0: literal
	byte byte
	size int // digits of %f
}

// moment is a time in parts as they are read.
type moment struct {
	year, month, day, hour, minute, second int
	nanos                                  int64
	unix                                   int64
	hasUnix, hasZone, pm, am               bool
	zone                                   int // seconds east
}

// compileTime reads a pattern. %f takes a number of digits (%3f); without one
// it has nine.
func compileTime(pattern string) (*timeFormat, error) {
	f := &timeFormat{pattern: pattern}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			f.steps = append(f.steps, timeStep{byte: pattern[i]})
			continue
		}
		i++
		size := 9
		if i+1 < len(pattern) && pattern[i] >= '1' && pattern[i] <= '9' && (pattern[i+1] == 'f' || pattern[i+1] == 'N') {
			size = int(pattern[i] - '0')
			i++
		}
		if i == len(pattern) {
			return nil, errorkind.Errorf(ErrFormat, "time %.60q ends with a percent sign", pattern)
		}
		verb := pattern[i]
		if expansion, ok := timeExpansions[verb]; ok {
			inner, err := compileTime(expansion)
			if err != nil {
				return nil, err
			}
			f.steps = append(f.steps, inner.steps...)
			continue
		}
		if verb == '%' {
			f.steps = append(f.steps, timeStep{byte: '%'})
			continue
		}
		if timeVerbs[verb] == 0 {
			return nil, errorkind.Errorf(ErrFormat, "%%%c in the time %.60q is not known", verb, pattern)
		}
		f.steps = append(f.steps, timeStep{verb: verb, size: size})
	}
	if len(f.steps) == 0 {
		return nil, errorkind.Errorf(ErrFormat, "an empty time format")
	}
	return f, nil
}

var timeExpansions = map[byte]string{
	'T': "%H:%M:%S", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'h': "%b", 'c': "%a %b %e %H:%M:%S %Y", 'r': "%I:%M:%S %p",
}

// timeVerbs has the digits that a verb reads at most; 1 where it reads letters.
var timeVerbs = map[byte]int{
	'Y': 4, 'y': 2, 'm': 2, 'd': 2, 'e': 2, 'H': 2, 'k': 2, 'I': 2, 'l': 2, 'M': 2, 'S': 2, 'f': 9, 'N': 9,
	's': 12, 'j': 3, 'b': 1, 'B': 1, 'a': 1, 'A': 1, 'p': 1, 'z': 1, 'Z': 1,
}

// length returns how many bytes of b a time takes, a negative number if b does
// not begin with one.
func (f *timeFormat) length(b []byte) int {
	var m moment
	n, ok := f.read(b, &m)
	if !ok {
		return -1
	}
	return n
}

// parse reads a time that takes all of b, in µs since 1970. Where it names no
// zone it is the given one's.
func (f *timeFormat) parse(b []byte, zone *time.Location) (int64, bool) {
	var m moment
	n, ok := f.read(b, &m)
	if !ok || n != len(b) {
		return 0, false
	}
	return m.micros(zone)
}

// micros puts a moment together.
func (m *moment) micros(zone *time.Location) (int64, bool) {
	if m.hasUnix {
		return m.unix*1_000_000 + m.nanos/1000, true
	}
	hour := m.hour
	if m.pm && hour < 12 {
		hour += 12
	} else if m.am && hour == 12 {
		hour = 0
	}
	if m.month < 1 || m.month > 12 || m.day < 1 || m.day > daysIn(m.year, m.month) || hour > 23 || m.minute > 59 || m.second > 60 {
		return 0, false
	}
	if !m.hasZone && zone != nil && zone != time.UTC {
		t := time.Date(m.year, time.Month(m.month), m.day, hour, m.minute, m.second, int(m.nanos), zone)
		return t.UnixMicro(), true
	}
	s := int64(daysSince1970(m.year, m.month, m.day))*86400 + int64(hour*3600+m.minute*60+m.second-m.zone)
	return s*1_000_000 + m.nanos/1000, true
}

// read takes the steps one by one.
func (f *timeFormat) read(b []byte, m *moment) (int, bool) {
	m.day, m.month, m.year = 1, 1, 1970
	pos := 0
	for i := range f.steps {
		step := &f.steps[i]
		if step.verb == 0 {
			if pos >= len(b) || b[pos] != step.byte {
				return 0, false
			}
			pos++
			continue
		}
		n, ok := m.step(step, b[pos:])
		if !ok {
			return 0, false
		}
		pos += n
	}
	return pos, true
}

// step reads one part and returns how many bytes it took.
func (m *moment) step(step *timeStep, b []byte) (int, bool) {
	switch step.verb {
	case 'b', 'B':
		if len(b) < 3 {
			return 0, false
		}
		m.month = monthOf(b[0], b[1], b[2])
		return letters(b, step.verb == 'b'), m.month > 0
	case 'a', 'A':
		n := letters(b, step.verb == 'a')
		return n, n >= 3
	case 'p':
		if len(b) < 2 {
			return 0, false
		}
		m.pm, m.am = b[0]|0x20 == 'p', b[0]|0x20 == 'a'
		return 2, (m.pm || m.am) && b[1]|0x20 == 'm'
	case 'z':
		return m.readZone(b)
	case 'Z':
		n := letters(b, false)
		m.hasZone = n > 0
		return n, string(b[:n]) == "UTC" || string(b[:n]) == "GMT" || string(b[:n]) == "Z"
	}
	return m.readNumber(step, b)
}

// letters counts the letters that b begins with, three at most if short.
func letters(b []byte, short bool) int {
	n := 0
	for n < len(b) && (b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z') && (!short || n < 3) {
		n++
	}
	return n
}

// readZone reads +hhmm, +hh:mm or Z.
func (m *moment) readZone(b []byte) (int, bool) {
	m.hasZone = true
	if len(b) > 0 && (b[0] == 'Z' || b[0] == 'z') {
		return 1, true
	}
	if len(b) < 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	at, size := 3, 5
	if b[3] == ':' {
		at, size = 4, 6
	}
	if len(b) < size {
		return 0, false
	}
	hours, ok1 := digits(b[1:3])
	minutes, ok2 := digits(b[at : at+2])
	if m.zone = (hours*60 + minutes) * 60; b[0] == '-' {
		m.zone = -m.zone
	}
	return size, ok1 && ok2 && hours <= 23 && minutes <= 59
}

// readNumber reads digits.
func (m *moment) readNumber(step *timeStep, b []byte) (int, bool) {
	most := timeVerbs[step.verb]
	if step.verb == 'f' || step.verb == 'N' {
		most = step.size
	}
	pos := 0
	if step.verb == 'e' || step.verb == 'k' || step.verb == 'l' {
		for pos < len(b) && pos < 1 && b[pos] == ' ' {
			pos++
		}
	}
	n, from := int64(0), pos
	for pos < len(b) && pos < most && b[pos] >= '0' && b[pos] <= '9' {
		n = n*10 + int64(b[pos]-'0')
		pos++
	}
	if pos == from {
		return 0, false
	}
	return pos, m.set(step, n, pos-from)
}

// set takes in what a verb of digits read.
func (m *moment) set(step *timeStep, n int64, size int) bool {
	switch step.verb {
	case 'Y':
		m.year = int(n)
		return size == 4
	case 'y':
		// As POSIX has it: 69 to 99 are of the last century.
		if m.year = 2000 + int(n); n >= 69 {
			m.year -= 100
		}
	case 'm':
		m.month = int(n)
	case 'd', 'e':
		m.day = int(n)
	case 'H', 'k', 'I', 'l':
		m.hour = int(n)
	case 'M':
		m.minute = int(n)
	case 'S':
		m.second = int(n)
	case 's':
		m.unix, m.hasUnix = n, true
	case 'j':
		return n >= 1 && n <= 366
	default: // f, N
		for ; size < 9; size++ {
			n *= 10
		}
		m.nanos = n
	}
	return true
}
