package accesslog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/valyala/fastjson"
)

// Wrapping is what stands before each line of a log that went through a
// container runtime or a syslog daemon.
type Wrapping uint8

// The wrappings. WrapUnknown is told from a sample.
const (
	WrapUnknown Wrapping = iota
	WrapNone
	WrapCRI    // <time> stdout F <line>: containerd, CRI-O
	WrapDocker // {"log":"<line>\n","stream":"stdout","time":"…"}: Docker's json-file
	WrapSyslog // <134>Nov 30 09:00:00 host name[1]: <line>, also with a time of RFC 3339, and RFC 5424
)

var wrappingNames = [...]string{"unknown", "nothing", "a CRI prefix", "Docker's json-file", "a syslog prefix"}

// String names the wrapping in a sentence.
func (w Wrapping) String() string { return wrappingNames[w] }

// ErrTooLong is returned by Unwrap when the parts of a line are longer than a
// line may be; the line is given up, to its last part.
var ErrTooLong = errors.New("parts of a line that is too long")

// MaxLine is the longest line that is put together from parts.
const MaxLine = 1 << 20

// DetectWrapping tells from the first lines of a log what stands before them.
func DetectWrapping(sample []byte) Wrapping {
	_, _, w := sampled(ChoiceOptions{Sample: sample})
	return w
}

// detectWrapping goes by what stands before most of the lines.
func detectWrapping(lines [][]byte) Wrapping {
	best, most := WrapNone, len(lines)/2
	for _, w := range [...]Wrapping{WrapCRI, WrapDocker, WrapSyslog} {
		n := 0
		u := NewUnwrapper(w)
		for _, line := range lines {
			if _, _, err := u.Unwrap(line); err == nil {
				n++
			}
		}
		if n > most {
			best, most = w, n
		}
	}
	return best
}

// Unwrapper takes off what stands before lines and joins their parts. It is not
// safe for concurrent use, and belongs to one file: what one holds of a part is
// the beginning of a line whose rest comes later.
type Unwrapper struct {
	wrapping Wrapping
	parts    [2]part // of stdout and stderr
	json     fastjson.Parser
}

// part is the beginning of a line.
type part struct {
	text []byte
	open bool
	long bool // too long: what comes of it is left out
}

// NewUnwrapper returns an unwrapper; WrapUnknown is WrapNone.
func NewUnwrapper(w Wrapping) *Unwrapper { return &Unwrapper{wrapping: w} }

// Wrapping returns what is taken off.
func (u *Unwrapper) Wrapping() Wrapping { return u.wrapping }

// Pending reports whether the beginning of a line is held: a position taken now
// would lose it.
func (u *Unwrapper) Pending() bool { return u.parts[0].open || u.parts[1].open }

// Unwrap returns the line within a line, which is valid until the next call.
// whole is false for a part whose rest is to come. The error is a *LineError for
// a line that isn't wrapped as the others are, or ErrTooLong.
func (u *Unwrapper) Unwrap(line []byte) (inner []byte, whole bool, err error) {
	switch u.wrapping {
	case WrapCRI:
		return u.cri(line)
	case WrapDocker:
		return u.docker(line)
	case WrapSyslog:
		n := syslogPrefix(line)
		if n < 0 {
			return nil, true, lineError("prefix", 1, line, "a time, a host and a name, as syslog writes them")
		}
		return line[n:], true, nil
	}
	return line, true, nil
}

// cri reads "<time> stdout F <line>": of P the rest follows.
func (u *Unwrapper) cri(line []byte) ([]byte, bool, error) {
	when, rest, ok := bytes.Cut(line, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	tag, rest, ok3 := bytes.Cut(rest, []byte{' '})
	_, isTime := parseAnyTime(when, unitNone, nil)
	which, known := streamOf(stream)
	if !ok || !ok2 || !isTime || len(when) < 20 || !known || len(tag) == 0 || tag[0] != 'F' && tag[0] != 'P' || !ok3 && len(rest) > 0 {
		return nil, true, lineError("prefix", 1, line, "<time> stdout F before the line, as a container runtime writes it")
	}
	return u.join(which, rest, tag[0] == 'F')
}

func streamOf(name []byte) (int, bool) {
	switch string(name) {
	case "stdout":
		return 0, true
	case "stderr":
		return 1, true
	}
	return 0, false
}

// docker reads an object of the json-file driver: a line without an end at its
// end has its rest in the next.
func (u *Unwrapper) docker(line []byte) ([]byte, bool, error) {
	bad := func() error {
		return lineError("prefix", 1, line, `{"log":"…","stream":"…","time":"…"} around the line, as Docker writes it`)
	}
	if len(line) == 0 || line[0] != '{' {
		return nil, true, bad()
	}
	object, err := u.json.ParseBytes(line)
	if err != nil {
		return nil, true, bad()
	}
	which, known := streamOf(object.GetStringBytes("stream"))
	text := object.Get("log")
	if !known || text == nil || text.Type() != fastjson.TypeString || !object.Exists("time") {
		return nil, true, bad()
	}
	inner := object.GetStringBytes("log")
	whole := bytes.HasSuffix(inner, []byte{'\n'})
	return u.join(which, bytes.TrimRight(inner, "\r\n"), whole)
}

// join puts the parts of a line together.
func (u *Unwrapper) join(which int, text []byte, last bool) ([]byte, bool, error) {
	p := &u.parts[which]
	if last && !p.open {
		return text, true, nil
	}
	if !p.open {
		p.text, p.open, p.long = p.text[:0], true, false
	}
	if p.long = p.long || len(p.text)+len(text) > MaxLine; !p.long {
		p.text = append(p.text, text...)
	}
	if !last {
		return nil, false, nil
	}
	p.open = false
	if p.long {
		return nil, true, fmt.Errorf("more than %d bytes: %w", MaxLine, ErrTooLong)
	}
	return p.text, true, nil
}

// Rest returns the beginnings of lines whose rest never came, at the end of a
// log. They are no lines, and are to be counted as malformed.
func (u *Unwrapper) Rest() [][]byte {
	var out [][]byte
	for i := range u.parts {
		if p := &u.parts[i]; p.open {
			out = append(out, p.text)
			p.open = false
		}
	}
	return out
}
