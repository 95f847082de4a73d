package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"penstock/producers/accesslog"
	"penstock/producers/recording"
)

type importAccesslogCmd struct {
	Files   []string `arg:"" help:"Logs, plain, gz or zst; several are merged by time." type:"existingfile"`
	Format  string   `help:"A format's name, a file of one (.yaml), or nginx:'…', apache:'…', haproxy:'…', envoy:'…' with a format string; by default told from the first lines."`
	Explain bool     `help:"Say for the first lines what becomes of each field, and write nothing."`
	Lines   int      `help:"How many lines to explain, of each file." default:"3"`
	logFlags
	Output string `short:"o" help:"The recording to write; its ending tells the format (.parquet, .arrow, .csv, .jsonl)." type:"path"`
	Strict bool   `help:"Fail at the first line that cannot be used."`
}

// Run reads access logs and writes a recording, or explains them.
func (c *importAccesslogCmd) Run(con *console) error {
	to := &output{Output: c.Output, Strict: c.Strict}
	if !c.Explain {
		if c.Output == "" {
			return fmt.Errorf("%w: missing flags: --output=STRING (or --explain)", errUsage)
		}
		if err := to.check(c.Files...); err != nil {
			return err
		}
	}
	log, err := c.options(con, c.Files)
	if err != nil {
		return err
	}
	o := recording.Options{AccessLog: log, Log: accesslog.ChoiceOptions{Name: c.Format}, Format: recording.AccessLog}
	if c.Explain {
		err = c.explain(con, o)
	} else {
		err = importFiles(con, to, c.Files, o)
	}
	if errors.Is(err, accesslog.ErrFormat) {
		return fmt.Errorf("%w: --format: %w", errUsage, err)
	}
	return err
}

// explainedLine is a record of a line as --json prints it.
type explainedLine struct {
	File   string                `json:"file"`
	Line   int64                 `json:"line"`
	Fields []accesslog.FieldFate `json:"fields"`
	Fault  string                `json:"fault,omitempty"` // why there is no row
}

// explainedFile is the choice of a file's format as --json prints it.
type explainedFile struct {
	File       string            `json:"file"`
	Format     string            `json:"format"`
	Confidence float64           `json:"confidence"`
	Lines      int               `json:"lines"`
	Matched    int               `json:"matched"`
	Named      bool              `json:"named"`
	Behind     string            `json:"behind"`
	Tried      []accesslog.Trial `json:"tried"`
	Records    []explainedLine   `json:"records"`
}

func (c *importAccesslogCmd) explain(con *console, o recording.Options) error {
	var files []explainedFile
	for _, name := range c.Files {
		f := explainedFile{File: name, Records: []explainedLine{}}
		choice, err := recording.ExplainLog(name, o, c.Lines, func(line int64, _ []byte, records []accesslog.Explanation) {
			for _, x := range records {
				record := explainedLine{File: name, Line: line, Fields: append([]accesslog.FieldFate{}, x.Fields...)}
				if x.Fault != nil {
					record.Fault = x.Fault.Error()
				}
				f.Records = append(f.Records, record)
			}
		})
		if err != nil {
			return err
		}
		f.Format, f.Confidence, f.Lines, f.Matched, f.Named = choice.Format, choice.Confidence, choice.Lines, choice.Matched, choice.Named
		f.Behind, f.Tried = choice.Wrapping.String(), append([]accesslog.Trial{}, choice.Tried...)
		files = append(files, f)
		if !con.json {
			fmt.Fprintf(con.out, "%s: %s\n", name, choice)
			printFates(con.out, f.Records)
		}
	}
	if con.json {
		e := json.NewEncoder(con.out)
		e.SetIndent("", "  ")
		return e.Encode(files)
	}
	return nil
}

// maxCell is how much of a value is printed for a person.
const maxCell = 60

func printFates(out io.Writer, records []explainedLine) {
	cell := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return '·'
			}
			return r
		}, s)
		if r := []rune(s); len(r) > maxCell {
			return string(r[:maxCell]) + "…"
		}
		return s
	}
	for _, x := range records {
		if x.Fault != "" {
			fmt.Fprintf(out, "line %d: no row: %s\n", x.Line, x.Fault)
		} else {
			fmt.Fprintf(out, "line %d\n", x.Line)
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, f := range x.Fields {
			what := f.Why
			if f.Result != "" {
				what = cell(f.Result)
				if f.Why != "" {
					what += " (" + f.Why + ")"
				}
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", cell(f.Field), cell(f.Value), f.Column, what)
		}
		_ = w.Flush() // Like fmt.Fprintf above: what cannot be written to the terminal cannot be told there.
	}
}
