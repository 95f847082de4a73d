package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"penstock/infra/errorkind"
	"penstock/schemas/event"
)

// ChoiceOptions say which format a log has.
type ChoiceOptions struct {
	// Name of a format that Penstock knows; a file of one (.yaml, .yml); or a
	// dialect, a colon, and a format string: nginx:'$remote_addr …', apache:,
	// haproxy:, envoy:, text:. Empty: told from Sample.
	Name string
	// Sample is what the log begins with, as it stands in the file: whole lines
	// as far as they are there. Fields of a delimited format are named by its
	// header, so that such a format needs one.
	Sample []byte
	// Wrapping is what stands before the lines; told from Sample unless given.
	Wrapping Wrapping
}

// Choice is the format that a log was taken for, and why.
type Choice struct {
	Format string
	// Confidence is the share of the sample's lines that are of the format; 1
	// for one that was named and has no sample, 0 for a guess without a line.
	Confidence float64
	Lines      int  // that were looked at, the first sampleLines at most
	Matched    int  // of them are of the format
	Named      bool // not told from the sample
	Wrapping   Wrapping
	Tried      []Trial // the other formats that had a line, best first
}

// Trial is how many lines were of a format.
type Trial struct {
	Format  string `json:"format"`
	Matched int    `json:"matched"`
}

// String is the choice in a sentence.
func (c Choice) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "format %s", c.Format)
	if c.Named {
		b.WriteString(" (named)")
	} else {
		fmt.Fprintf(&b, " (confidence %.2f: %d of the first %d lines", c.Confidence, c.Matched, c.Lines)
		if len(c.Tried) > 0 {
			b.WriteString("; also tried")
			for i, t := range c.Tried {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, " %s %d", t.Format, t.Matched)
			}
		}
		b.WriteByte(')')
	}
	if c.Wrapping != WrapNone {
		fmt.Fprintf(&b, ", behind %s", c.Wrapping)
	}
	return b.String()
}

// sampleLines is how many lines of a sample are looked at, at most.
const sampleLines = 100

// Open returns a parser of the format that is named, or else that most lines of
// the sample are of; combined if none is. The error wraps ErrFormat or
// ErrOption.
func Open(c ChoiceOptions, o Options) (*Parser, Choice, error) {
	lines, bare, wrapping := sampled(c)
	choice := Choice{Lines: len(lines) + bare, Wrapping: wrapping}
	if c.Name != "" {
		f, err := Find(c.Name)
		if err != nil {
			return nil, Choice{}, err
		}
		p, err := NewParser(f, o)
		if err != nil {
			return nil, Choice{}, err
		}
		choice.Format, choice.Named, choice.Confidence = f.Name(), true, 1
		if choice.Matched = p.try(lines); choice.Lines > 0 {
			choice.Confidence = float64(choice.Matched) / float64(choice.Lines)
		}
		return p, choice, nil
	}
	return recognise(lines, choice, o)
}

// Find returns the format of a name, as ChoiceOptions has it. The error wraps
// ErrFormat.
func Find(name string) (*Format, error) {
	if ext := strings.ToLower(filepath.Ext(name)); (ext == ".yaml" || ext == ".yml") && !strings.ContainsAny(name, " $%{") {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, errorkind.Errorf(ErrFormat, "%w", err)
		}
		return decode(b, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), origin{place: name, text: b})
	}
	f, ok, err := ofString(name)
	if err != nil || ok {
		return f, err
	}
	return Named(name)
}

// recognise tries all formats: those of servers first, and the generic ones only
// if no line was of them.
func recognise(lines [][]byte, choice Choice, o Options) (*Parser, Choice, error) {
	best, bestMatched := (*Parser)(nil), 0
	var trials []Trial
	for _, generic := range [...]bool{false, true} {
		for _, name := range Names() {
			f, err := Named(name)
			if err != nil {
				return nil, Choice{}, err
			}
			if f.generic != generic {
				continue
			}
			p, err := newParser(f, o, false)
			if err != nil {
				return nil, Choice{}, err
			}
			n := p.try(lines)
			if n == 0 {
				continue
			}
			trials = append(trials, Trial{name, n})
			if n > bestMatched {
				best, bestMatched = p, n
			}
		}
		if best != nil {
			break
		}
	}
	if best == nil {
		f, err := Named("combined")
		if err != nil {
			return nil, Choice{}, err
		}
		if best, err = newParser(f, o, false); err != nil {
			return nil, Choice{}, err
		}
	}
	choice.Format, choice.Matched = best.format.Name(), bestMatched
	if choice.Lines > 0 {
		choice.Confidence = float64(bestMatched) / float64(choice.Lines)
	}
	for matched := bestMatched; matched > 0; matched-- {
		for _, t := range trials {
			if t.Matched == matched && t.Format != choice.Format {
				choice.Tried = append(choice.Tried, t)
			}
		}
	}
	return best, choice, nil
}

// try counts the lines that are of the parser's format. Of a line with several
// records all must be, but for a last one that the sample cuts. Headers and remarks are of it if rows are, or if there is
// nothing else.
func (p *Parser) try(lines [][]byte) int {
	rows, headers := 0, 0
	var r event.Request
	for i, line := range lines {
		fits, header := true, false
		for n, rest := 0, line; len(rest) > 0 && fits; n++ {
			var record []byte
			record, rest = p.Cut(rest)
			err := p.Parse(record, &r)
			header = errors.Is(err, ErrHeader)
			cut := n > 0 && len(rest) == 0 && i == len(lines)-1 && len(line) >= minTorn
			fits = header || cut || err == nil && r.Check() == nil
		}
		switch {
		case header:
			headers++
		case fits:
			rows++
		}
	}
	if rows == 0 && headers < len(lines) {
		return 0
	}
	return rows + headers
}

// sampled cuts a sample into its first lines without what stands before them.
// bare is how many lines are not wrapped as the others are.
func sampled(c ChoiceOptions) (lines [][]byte, bare int, w Wrapping) {
	var raw [][]byte
	rest := c.Sample
	for len(raw) < sampleLines {
		line, behind, whole := bytes.Cut(rest, []byte{'\n'})
		// What breaks off in the middle says nothing, unless there is no other.
		if !whole && len(raw) > 0 && len(c.Sample) >= minTorn {
			break
		}
		if line = bytes.TrimSuffix(line, []byte{'\r'}); len(line) > 0 {
			raw = append(raw, line)
		}
		if !whole {
			break
		}
		rest = behind
	}
	if w = c.Wrapping; w == WrapUnknown {
		w = detectWrapping(raw)
	}
	u := NewUnwrapper(w)
	for _, line := range raw {
		inner, whole, err := u.Unwrap(line)
		switch {
		case err != nil:
			bare++
		case whole && len(inner) > 0:
			lines = append(lines, bytes.Clone(inner))
		}
	}
	return lines, bare, w
}

// minTorn is how long a sample must be for its last line to be taken for one
// that the sample cuts, and not the log.
const minTorn = 32 << 10
