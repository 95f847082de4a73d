package event

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"penstock/schemas/columnar"
)

// Gauge is the state of a queue at a time (schema gauge/1), which an entry
// point or an agent sends once a second. NullInt is what it doesn't know.
type Gauge struct {
	// Time is when the state was read, in µs since 1970 UTC.
	Time int64
	// Site and Server say whose queue it is; Server may be empty for a queue in
	// front of a whole site.
	Site, Server string
	// Queued and InService are requests waiting and being processed.
	Queued, InService int64
	// QueuedStatic and QueuedDynamic are Queued by class.
	QueuedStatic, QueuedDynamic int64
	// PotentialOverdue is by how much (µs) queued requests would miss their
	// limits (PAPERS §2, control module 2).
	PotentialOverdue int64
	// Backlog is the requests that wait in a coder's queue (PAPERS §3); Server is then
	// the coder.
	Backlog int64
}

// NewGauge returns a gauge at time (µs) that knows nothing else.
func NewGauge(time int64) Gauge {
	return Gauge{
		Time: time, Queued: NullInt, InService: NullInt, QueuedStatic: NullInt,
		QueuedDynamic: NullInt, PotentialOverdue: NullInt, Backlog: NullInt,
	}
}

// Check returns a *FieldError if the gauge may not enter a batch: a time that
// is not after 1900 and before 2200, no site, an id longer than MaxID or not
// UTF-8, or a negative number.
func (g *Gauge) Check() error {
	if g.Time < MinTime || g.Time > MaxTime {
		return &FieldError{"time", fmt.Sprint(g.Time), timeExpected}
	}
	if g.Site == "" {
		return &FieldError{"site", "", "a site"}
	}
	for i, s := range [...]string{g.Site, g.Server} {
		if len(s) > MaxID {
			return &FieldError{gaugeFields[1+i].Name, s, fmt.Sprintf("at most %d bytes (got %d)", MaxID, len(s))}
		}
		if !utf8.ValidString(s) {
			return &FieldError{gaugeFields[1+i].Name, s, "UTF-8"}
		}
	}
	for i, v := range g.numbers() {
		if v < 0 && v != NullInt {
			return &FieldError{gaugeFields[gaugeNumbers+i].Name, fmt.Sprint(v), "0 or more"}
		}
	}
	return nil
}

func (g *Gauge) numbers() [6]int64 {
	return [...]int64{g.Queued, g.InService, g.QueuedStatic, g.QueuedDynamic, g.PotentialOverdue, g.Backlog}
}

// gaugeNumbers is the place of the first column of numbers.
const gaugeNumbers = 3

var gaugeFields = [...]columnar.Field{
	{Name: "time", Type: columnar.Time},
	{Name: "site", Type: columnar.DictUtf8},
	{Name: "server", Type: columnar.DictUtf8, Nullable: true},
	{Name: "queued", Type: columnar.Int64, Nullable: true},
	{Name: "in_service", Type: columnar.Int64, Nullable: true},
	{Name: "queued_static", Type: columnar.Int64, Nullable: true},
	{Name: "queued_dynamic", Type: columnar.Int64, Nullable: true},
	{Name: "potential_overdue_us", Type: columnar.Int64, Nullable: true},
	{Name: "backlog", Type: columnar.Int64, Nullable: true},
}

// Gauges is a batch of gauges in columns. The zero value is an empty batch.
type Gauges struct {
	Time             []int64
	Site, Server     Dict
	Queued           []int64
	InService        []int64
	QueuedStatic     []int64
	QueuedDynamic    []int64
	PotentialOverdue []int64
	Backlog          []int64
}

// Len returns the number of rows.
func (b *Gauges) Len() int { return len(b.Time) }

// numbers returns the columns of numbers in the order of their fields.
func (b *Gauges) numbers() [6]*[]int64 {
	return [...]*[]int64{&b.Queued, &b.InService, &b.QueuedStatic, &b.QueuedDynamic, &b.PotentialOverdue, &b.Backlog}
}

// Append adds a row. It is not checked (Gauge.Check).
func (b *Gauges) Append(g *Gauge) {
	b.Time = append(b.Time, g.Time)
	b.Site.Append(g.Site)
	b.Server.Append(g.Server)
	values := g.numbers()
	for i, c := range b.numbers() {
		*c = append(*c, values[i])
	}
}

// Row returns row i as a Gauge.
func (b *Gauges) Row(i int) Gauge {
	return Gauge{
		Time: b.Time[i], Site: b.Site.At(i), Server: b.Server.At(i),
		Queued: b.Queued[i], InService: b.InService[i], QueuedStatic: b.QueuedStatic[i],
		QueuedDynamic: b.QueuedDynamic[i], PotentialOverdue: b.PotentialOverdue[i], Backlog: b.Backlog[i],
	}
}

// Reset empties the batch and keeps its memory.
func (b *Gauges) Reset() {
	b.Time = b.Time[:0]
	b.Site.Reset()
	b.Server.Reset()
	for _, c := range b.numbers() {
		*c = (*c)[:0]
	}
}

// gaugeMemory is what the columns of gauges need beside the batch itself.
type gaugeMemory struct {
	columns []columnar.Column
	texts   [2]columnar.TextMemory
	valid   [6][]byte
}

func (m *gaugeMemory) view(b *Gauges) error {
	for i, d := range [...]*Dict{&b.Site, &b.Server} {
		if err := d.consistent(gaugeFields[1+i].Name, b.Len()); err != nil {
			return err
		}
	}
	site := columnar.Dictionary(gaugeFields[1].Name, b.Site.Codes, b.Site.Values, &m.texts[0])
	if site.Nulls > 0 {
		return fmt.Errorf("column site: %d rows are absent, expected none: %w", site.Nulls, ErrInvalid)
	}
	site.Nullable = false
	m.columns = append(m.columns[:0],
		columnar.Fixed(gaugeFields[0].Name, columnar.Time, b.Time), site,
		columnar.Dictionary(gaugeFields[2].Name, b.Server.Codes, b.Server.Values, &m.texts[1]))
	for i, c := range b.numbers() {
		name := gaugeFields[gaugeNumbers+i].Name
		if len(*c) != b.Len() {
			return fmt.Errorf("column %s: %d rows, expected %d: %w", name, len(*c), b.Len(), ErrInvalid)
		}
		m.columns = append(m.columns, columnar.Nullable(name, columnar.Int64, *c, NullInt, &m.valid[i]))
	}
	return nil
}

// GaugeEncoder encodes batches of gauges as Encoder does requests.
type GaugeEncoder struct {
	memory gaugeMemory
	writer columnar.Writer
	stream []byte
}

// Encode appends the body of a batch to dst; see Encoder.Encode.
func (e *GaugeEncoder) Encode(dst []byte, b *Gauges) ([]byte, error) {
	if b.Len() > MaxRows {
		return dst, fmt.Errorf("batch of %d rows, expected at most %d: %w", b.Len(), MaxRows, ErrInvalid)
	}
	if err := e.memory.view(b); err != nil {
		return dst, err
	}
	return pack(dst, &e.writer, &e.stream, e.memory.columns, b.Len())
}

var gaugeSchema = columnar.Schema(gaugeFields[:], map[string]string{"schema": GaugeSchema})

// GaugeArrowSchema returns the Arrow schema of gauge/1.
func GaugeArrowSchema() *arrow.Schema { return gaugeSchema }

// GaugeDecoder decodes batches of gauges as Decoder does requests.
type GaugeDecoder struct {
	reader columnar.Reader
	raw    []byte
	fill   filler
}

// Decode overwrites into with the batch of a body; see Decoder.Decode.
func (d *GaugeDecoder) Decode(body []byte, encoding string, into *Gauges) error {
	into.Reset()
	raw, err := unpack(&d.raw, body, encoding, gaugeEncodings)
	if err != nil {
		return err
	}
	batch, _, err := d.reader.Read(raw, MaxRows)
	if err != nil {
		return undecodable(err)
	}
	if err := d.fill.gauges(into, batch); err != nil {
		*into = Gauges{}
		return undecodable(err)
	}
	return nil
}

func (f *filler) gauges(b *Gauges, batch *columnar.Batch) error {
	numbers := b.numbers()
	for i := range gaugeFields {
		c, err := find(batch, &gaugeFields[i])
		if err != nil {
			return err
		}
		name := gaugeFields[i].Name
		switch i {
		case 0:
			b.Time = read(b.Time, c, 0, batch.Rows)
			err = inRange(name, b.Time, MinTime, MaxTime, timeExpected)
		case 1:
			if err = f.dict(&b.Site, c, batch.Rows); err == nil && slices.Contains(b.Site.Codes, NullCode) {
				err = fmt.Errorf("column %s: a row is empty, expected a site: %w", name, columnar.ErrColumn)
			}
		case 2:
			err = f.dict(&b.Server, c, batch.Rows)
		default:
			n := numbers[i-gaugeNumbers]
			*n = read(*n, c, NullInt, batch.Rows)
			err = notNegative(name, *n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notNegative returns an error for the first value below 0 that isn't absent.
func notNegative(name string, values []int64) error {
	i := slices.IndexFunc(values, func(v int64) bool { return v < 0 && v != NullInt })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("column %s: row %d: got %d, expected 0 or more: %w", name, i, values[i], columnar.ErrColumn)
}

// GaugeFields returns the columns of gauge/1 (DESIGN §3.1).
func GaugeFields() []columnar.Field { return append([]columnar.Field{}, gaugeFields[:]...) }
