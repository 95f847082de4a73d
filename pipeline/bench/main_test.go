package bench

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		results.print(os.Stdout)
		os.Exit(code)
	}))
}

// results is the table of this run.
var results table

// table holds what was measured against what DESIGN §7 asks for.
type table struct {
	mu     sync.Mutex
	lines  []line
	sheets []*sheet
}

// sheet is a table of its own: things of one kind beside each other.
type sheet struct {
	title string
	rows  [][]string
}

func newSheet(title string, columns ...string) *sheet { return &sheet{title, [][]string{columns}} }

func (s *sheet) row(cells ...string) { s.rows = append(s.rows, cells) }

func (s *sheet) print(to io.Writer) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range s.rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush() // to memory
	fmt.Fprintf(to, "\n%s\n%s", s.title, b.String())
}

// sheet adds a table, in place of an earlier one of that title.
func (t *table) sheet(s *sheet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sheets = slices.DeleteFunc(t.sheets, func(have *sheet) bool { return have.title == s.title })
	t.sheets = append(t.sheets, s)
}

// line is one figure. least and aim are 0 where the design names none.
type line struct {
	name       string
	figure     float64
	unit       string
	least, aim float64
	lower      bool // the lower, the better
	note       string
}

func (t *table) add(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.lines {
		if t.lines[i].name == l.name { // a benchmark may run several times; the last one counts
			t.lines[i] = l
			return
		}
	}
	t.lines = append(t.lines, l)
}

// verdict says whether a figure is what the design asks for.
func (l *line) verdict() string {
	reaches := func(bound float64) bool {
		if l.lower {
			return l.figure <= bound
		}
		return l.figure >= bound
	}
	switch {
	case l.least == 0 && l.aim == 0:
		return ""
	case l.aim != 0 && reaches(l.aim):
		return "aim met"
	case l.least != 0 && reaches(l.least):
		return "met"
	default:
		return "NOT MET"
	}
}

func (t *table) print(to io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sheets {
		s.print(to)
	}
	if len(t.lines) == 0 {
		return
	}
	bound := func(v float64, unit string) string {
		if v == 0 {
			return ""
		}
		return figure(v, unit)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "what\tmeasured\tat least\taim\t\tbeside\n")
	for _, l := range t.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.name, figure(l.figure, l.unit), bound(l.least, l.unit), bound(l.aim, l.unit), l.verdict(), l.note)
	}
	_ = w.Flush() // to memory
	fmt.Fprintf(to, "\n%s\n", b.String())
}

// figure prints a figure with three digits that mean something.
func figure(v float64, unit string) string {
	switch {
	case strings.HasSuffix(unit, "/s") && v >= 1e6:
		return fmt.Sprintf("%.2f million %s", v/1e6, unit)
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

func TestTheTableSaysWhatIsMet(t *testing.T) {
	var tab table
	tab.add(line{name: "fast", figure: 1, unit: "x"})
	tab.add(line{name: "fast", figure: 3_500_000, unit: "rows/s", least: 1e6, aim: 3e6})
	tab.add(line{name: "enough", figure: 26, unit: "%", least: 25})
	tab.add(line{name: "slow", figure: 7, unit: "ms", least: 5, lower: true})
	tab.add(line{name: "told", figure: 7, unit: "ms", note: "beside"})
	tab.sheet(newSheet("Cars", "old"))
	cars := newSheet("Cars", "car", "wheels")
	cars.row("three-wheeler", "3")
	tab.sheet(cars)
	var b strings.Builder
	tab.print(&b)
	want := `
Cars
car            wheels
three-wheeler  3

what    measured             at least             aim                           beside
fast    3.50 million rows/s  1.00 million rows/s  3.00 million rows/s  aim met  
enough  26.0 %               25.0 %                                    met      
slow    7.00 ms              5.00 ms                                   NOT MET  
told    7.00 ms                                                                 beside

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
