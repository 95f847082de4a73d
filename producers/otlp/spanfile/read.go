package spanfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

// Read reads files of spans and emits the requests of their calls. The request
// that emit is given is valid during the call; its error ends reading and is
// returned as it is. The account of the returned Stats adds up to all spans, also
// after an error.
func Read(ctx context.Context, files []string, o Options, emit func(*event.Request) error) (join.Stats, error) {
	if err := o.complete(); err != nil {
		return join.Stats{}, err
	}
	mapper, err := span.NewMapper(o.Rules)
	if err != nil {
		return join.Stats{}, err
	}
	r := &reader{ctx: ctx, o: &o, mapper: mapper, order: order{limit: o.Order, emit: emit}}
	for i, name := range files {
		if err = r.file(name, i == 0); err != nil {
			break
		}
	}
	if r.joiner == nil {
		return join.Stats{}, err
	}
	r.joiner.Flush()
	if err == nil {
		err = r.order.flush()
	}
	stats := r.joiner.Stats()
	if err == nil && stats.Read > 0 && stats.Read == stats.Account[join.Malformed] {
		err = fmt.Errorf("%d spans or lines, all malformed: %w", stats.Read, ErrNothing)
	}
	return stats, err
}

// reader is one Read.
type reader struct {
	ctx    context.Context //nolint:containedctx // It lives as long as the call of Read that has it.
	o      *Options
	mapper *span.Mapper
	joiner *join.Joiner
	order  order
	name   string
	read   int64
	row    event.Request
}

// errStop ends reading from within; the order has the error that counts.
var errStop = errors.New("stop")

// source reads the spans of one file.
type source func(r *reader, in *bufio.Reader) error

var sources = map[Format]source{
	OTLP: readOTLP, Proto: readProto, Jaeger: readJaeger, Zipkin: readZipkin, CSV: readCSV,
}

const buffer = 128 << 10

func (r *reader) file(name string, first bool) (err error) {
	f, err := recording.OpenPlain(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r.name = name
	in := bufio.NewReaderSize(f, buffer)
	format := r.o.Format
	if format == Auto {
		if format, err = detect(name, in); err != nil {
			return err
		}
	}
	if r.joiner == nil {
		r.joiner = join.New(join.Options{
			Entries: r.o.Entries, MaxSpans: r.o.MaxSpans, Window: int64(r.o.Window), Trace64: format == Zipkin,
		}, r.call)
	}
	_ = first
	before := r.read
	if err := sources[format](r, in); err != nil {
		if errors.Is(err, errStop) {
			return r.order.err
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if r.read == before && r.o.Note != nil {
		r.o.Note(name, "nothing is in it")
	}
	return nil
}

// checkEvery is after how many spans a cancelled context is noticed.
const checkEvery = 4096

// add takes a span.
func (r *reader) add(s *span.Span) {
	r.read++
	r.joiner.Add(r.read, s)
}

// bad takes what is no span.
func (r *reader) bad(line int64, raw []byte, err error) {
	r.read++
	r.joiner.Malformed(1)
	if r.o.Bad == nil {
		return
	}
	const maxGot, maxRaw = 80, 64 << 10
	r.o.Bad(recording.BadLine{
		File: r.name, Line: line, Field: "span", Got: string(raw[:min(len(raw), maxGot)]), Expected: err.Error(),
		Raw: raw[:min(len(raw), maxRaw)],
	})
}

// stopped reports whether reading should end.
func (r *reader) stopped() error {
	if r.order.err != nil {
		return errStop
	}
	return r.ctx.Err()
}

// call takes a call of the Joiner.
func (r *reader) call(c *join.Call) {
	c.Request(&r.row, r.o.Service)
	r.order.add(&r.row)
}

// broken says how a file ended that should go on.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", err, recording.ErrDamaged)
}
