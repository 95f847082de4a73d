package locations

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"penstock/schemas/control"
)

// csvRows reads a CSV whose first line names the columns.
type csvRows struct {
	in   *csv.Reader
	at   map[string]int
	head int
}

func newCSVRows(r io.Reader) (*csvRows, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("import locations: the first line must name the columns %s: %w", strings.Join(columns, ","), err)
	}
	at, err := columnsOf(head)
	if err != nil {
		return nil, err
	}
	return &csvRows{in: in, at: at, head: len(head)}, nil
}

// Next reads a line.
func (c *csvRows) Next() (Row, int, error) {
	fields, err := c.in.Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return Row{}, parse.StartLine, fmt.Errorf("%w: %w", ErrRow, err)
	}
	if err != nil {
		return Row{}, 0, err
	}
	line, _ := c.in.FieldPos(0)
	if len(fields) != c.head {
		return Row{}, line, fmt.Errorf("%d fields, expected %d: %w", len(fields), c.head, ErrRow)
	}
	r, err := parseRow(func(column string) string {
		if i, ok := c.at[column]; ok {
			return fields[i]
		}
		return ""
	})
	return r, line, err
}

// csvWriter writes an export.
type csvWriter struct{ out *csv.Writer }

func newCSVWriter(w io.Writer) (*csvWriter, error) {
	c := &csvWriter{csv.NewWriter(w)}
	return c, c.out.Write(exported)
}

func (c *csvWriter) write(owner string, l control.Location) error {
	return c.out.Write([]string{
		owner, l.Site, strconv.FormatUint(l.Version, 10), string(l.State),
		l.Since.UTC().Format(time.RFC3339Nano), strconv.FormatBool(l.Pinned),
	})
}

func (c *csvWriter) close() error {
	c.out.Flush()
	return c.out.Error()
}
