package spanfile

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"penstock/producers/otlp/span"
)

// csvColumns are the places of the columns that are known; −1 is not there.
type csvColumns struct {
	trace, id, parent, name, start, end, duration, kind int
	attributes                                          []csvAttribute
}

type csvAttribute struct {
	at  int
	key string
}

// csvHeader finds the columns by their names, whatever their case.
func csvHeader(names []string) (csvColumns, error) {
	c := csvColumns{trace: -1, id: -1, parent: -1, name: -1, start: -1, end: -1, duration: -1, kind: -1}
	known := map[string]*int{
		"traceid": &c.trace, "spanid": &c.id, "parentid": &c.parent, "parentspanid": &c.parent, "operationname": &c.name,
		"starttimeunixnano": &c.start, "endtimeunixnano": &c.end, "duration": &c.duration, "kind": &c.kind,
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		if at := known[strings.ToLower(name)]; at != nil {
			*at = i
			continue
		}
		key := name
		switch strings.ToLower(name) {
		case "podname":
			key = span.AttrPod
		case "servicename":
			key = span.AttrService
		}
		c.attributes = append(c.attributes, csvAttribute{i, key})
	}
	if c.trace < 0 || c.id < 0 {
		return c, fmt.Errorf("header %.80q, expected TraceID and SpanID among the columns: %w", strings.Join(names, ","), ErrFormat)
	}
	return c, nil
}

func readCSV(r *reader, in *bufio.Reader) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord, rows.LazyQuotes = -1, true, true
	names, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return broken(err)
	}
	columns, err := csvHeader(names)
	if err != nil {
		return err
	}
	width := len(names)
	var s span.Span
	for n := 0; ; n++ {
		if n%checkEvery == 0 {
			if err := r.stopped(); err != nil {
				return err
			}
		}
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			r.bad(int64(bad.StartLine), nil, bad.Err)
			continue
		}
		if err != nil {
			return broken(err)
		}
		line, _ := rows.FieldPos(0)
		if len(fields) != width {
			r.bad(int64(line), []byte(strings.Join(fields, ",")), fmt.Errorf("%d fields, expected %d: %w", len(fields), width, span.ErrMalformed))
			continue
		}
		if err := columns.span(&s, fields, r.mapper); err != nil {
			r.bad(int64(line), []byte(strings.Join(fields, ",")), err)
			continue
		}
		r.add(&s)
	}
}

// span reads one line.
func (c *csvColumns) span(s *span.Span, fields []string, m *span.Mapper) (err error) {
	get := func(i int) string {
		if i < 0 {
			return ""
		}
		return strings.TrimSpace(fields[i])
	}
	s.Reset()
	if s.Trace, err = span.ParseTrace(get(c.trace)); err != nil {
		return fmt.Errorf("TraceID: %w", err)
	}
	if s.ID, err = span.ParseID(get(c.id)); err != nil {
		return fmt.Errorf("SpanID: %w", err)
	}
	if p := get(c.parent); p != "root" && p != "-" {
		if s.Parent, err = span.ParseID(p); err != nil {
			return fmt.Errorf("ParentID: %w", err)
		}
	}
	start, err := csvNumber(get(c.start))
	if err != nil {
		return fmt.Errorf("StartTimeUnixNano: %w", err)
	}
	end, err := csvNumber(get(c.end))
	if err != nil {
		return fmt.Errorf("EndTimeUnixNano: %w", err)
	}
	if err := s.Times(start, end); err != nil {
		return err
	}
	if s.Duration == span.Unknown && !s.Backwards {
		// µs, where there is no end.
		us, err := csvNumber(get(c.duration))
		if err != nil || us > 1<<53 {
			return fmt.Errorf("duration %.40q: %w", get(c.duration), span.ErrMalformed)
		}
		if us > 0 {
			s.Duration = int64(us) * 1000
		}
	}
	s.Kind = span.ParseKind(get(c.kind))
	m.Resource()
	for _, a := range c.attributes {
		m.ResourceAttr(a.key, get(a.at))
	}
	m.Begin()
	m.Attr(span.AttrName, get(c.name))
	m.Fill(s)
	return s.Check()
}

// csvNumber reads a whole number that isn't negative; 0 is none.
func csvNumber(s string) (uint64, error) {
	if s == "" || s == "-" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || f < 0 || f >= 1<<63 {
			return 0, fmt.Errorf("%.40q, expected a number: %w", s, span.ErrMalformed)
		}
		n = uint64(f)
	}
	return n, nil
}
