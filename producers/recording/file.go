package recording

import (
	"errors"
	"io"
	"strings"

	"penstock/schemas/event"
)

// source reads the rows of one file in the file's order.
type source interface {
	// next fills r. The error is io.EOF, a *fault of one line, which is
	// complete but for the line, or the file's own, after which nothing comes.
	next(r *event.Request) error
	// line is the number of the row that next returned last; raw its text.
	line() int64
	raw() []byte
	blank() int64
	close() error
}

// file is one recording that is read.
type file struct {
	tally
	index int
	in    *input
	src   source
	opts  *Options

	row       event.Request // in hand
	rowLine   int64
	saidEmpty bool // that nothing is in it
}

func openFile(name string, index int, o *Options, t *interner) (*file, error) {
	in, err := openInput(name)
	if err != nil {
		return nil, err
	}
	f := &file{tally: tally{name: name, tell: o.Bad}, index: index, in: in, opts: o}
	if f.src, err = f.newSource(t); err != nil {
		return nil, errors.Join(err, in.close())
	}
	return f, nil
}

func (f *file) newSource(t *interner) (source, error) {
	format := f.opts.Format
	if format == Auto {
		format = detect(f.in, f.opts)
	}
	switch format {
	case Parquet, Arrow:
		return newColumnar(f.in, format, f.note)
	case CSV:
		f.in.skipBOM()
		return newCSV(f.in, t, f.note)
	case JSONLines:
		f.in.skipBOM()
		return newJSON(f.in, t, f.note), nil
	case AccessLog:
		f.in.skipBOM()
		return newLog(f.in, f.opts, f.note)
	}
	_, err := ParseFormat(string(format))
	return nil, err
}

func (f *file) note(text string) {
	if f.opts.Note != nil {
		f.opts.Note(f.name, text)
	}
}

// noteEmpty says at the end, once, that a file had no row and no bad line.
func (f *file) noteEmpty() {
	if f.rows == 0 && f.bad == 0 && !f.saidEmpty {
		f.saidEmpty = true
		f.note("nothing is in it")
	}
}

// noteUnknown says which columns are left out.
func noteUnknown(note func(string), names []string) {
	if len(names) > 0 {
		note("columns left out: " + strings.Join(names, ", "))
	}
}

// next reads the next row that can be used into f.row.
func (f *file) next() error {
	for {
		err := f.src.next(&f.row)
		if err == nil {
			if err = f.row.Check(); err == nil {
				f.rows++
				f.rowLine = f.src.line()
				return nil
			}
			err = f.invalid(err)
		}
		var bad *fault
		switch {
		case errors.As(err, &bad):
			if err := f.report(bad); err != nil {
				return err
			}
		case errors.Is(err, io.EOF):
			if err := f.end(); err != nil {
				return err
			}
			f.noteEmpty()
			return io.EOF
		default:
			return damaged(f.name, f.src.line(), err)
		}
	}
}

// invalid makes a fault of what Check found.
func (f *file) invalid(err error) error {
	var e *event.FieldError
	if !errors.As(err, &e) {
		return err
	}
	return &fault{line: f.src.line(), field: e.Field, got: e.Value, expected: e.Expected, raw: f.src.raw()}
}

func (f *file) close() error {
	return errors.Join(f.src.close(), f.in.close())
}
