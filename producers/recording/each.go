package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// LineFault says why a line cannot be used.
type LineFault struct {
	Field    string
	Got      string
	Expected string
}

// EachLine calls parse for each line of a text file that isn't blank, plain, gz
// or zst, without line end and byte order mark; it is for formats that are not
// recordings of requests. A line that parse finds a fault with, or of more than
// 1 MB, is told to bad (nil: only counted) as a Reader does, and the errors are
// a Reader's. It ends early with ctx.
func EachLine(ctx context.Context, name string, bad func(BadLine), parse func(line []byte) *LineFault) (Stats, error) {
	in, err := openInput(name)
	if err != nil {
		return Stats{}, err
	}
	in.skipBOM()
	lines := lineReader{in: in.in}
	tally := tally{name: name, tell: bad}
	err = eachLine(ctx, &lines, &tally, parse)
	stats := Stats{Rows: tally.rows, Bad: tally.bad, Blank: lines.blank}
	return stats, errors.Join(err, in.close())
}

// checkEvery is after how many lines a cancelled context is noticed.
const checkEvery = 4096

func eachLine(ctx context.Context, lines *lineReader, t *tally, parse func([]byte) *LineFault) error {
	for {
		if lines.line%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		text, long, err := lines.next()
		if errors.Is(err, io.EOF) {
			return t.end()
		}
		if err != nil {
			return damaged(t.name, lines.line, err)
		}
		var f *LineFault
		if long {
			f = &LineFault{"line", "a longer line", fmt.Sprintf("at most %d bytes", maxLine)}
		} else {
			f = parse(text)
		}
		if f == nil {
			t.rows++
			continue
		}
		if err := t.report(&fault{line: lines.line, field: f.Field, got: f.Got, expected: f.Expected, raw: text}); err != nil {
			return err
		}
	}
}
