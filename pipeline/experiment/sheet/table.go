package sheet

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is a table for a terminal or a page.
type Table struct {
	Title string
	Notes []string
	Head  []string
	Rows  [][]string
}

// Text prints tables, an empty line between two.
func Text(w io.Writer, tables []Table) error {
	var b strings.Builder
	for i, t := range tables {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) text(b *strings.Builder) {
	fmt.Fprintf(b, "%s\n", t.Title)
	out := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	line := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprint(out, c)
		}
		fmt.Fprintln(out)
	}
	line(t.Head)
	for _, row := range t.Rows {
		line(row)
	}
	_ = out.Flush() // Into memory.
	for _, n := range t.Notes {
		fmt.Fprintf(b, "  %s\n", n)
	}
}
