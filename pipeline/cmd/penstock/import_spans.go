package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"penstock/producers/otlp/join"
	"penstock/producers/otlp/span"
	"penstock/producers/otlp/spanfile"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

type importSpansCmd struct {
	Files  []string `arg:"" help:"Spans, plain, gz or zst; traces may go over from one file to the next." type:"existingfile"`
	Format string   `help:"Format of all files; by default told from their first bytes." enum:",otlp,otlp-proto,jaeger,zipkin,csv" default:""`
	spanRules
	Service  string `help:"What service_us is: the callee's whole time, or its own without the calls that it waited for, which split needs." enum:"whole,own" default:"whole"`
	Entries  string `help:"Which roots of traces are requests from outside: those of kind server, all but those known to be none, none." enum:"servers,all,none" default:"servers"`
	MaxSpans int    `help:"Most spans in memory at a time." default:"1048576"`
	output
}

// spanRules are attributes that fill columns: KEY, KEY=REGEXP (its first group) or
// =VALUE, the first that a span or its resource has.
type spanRules struct {
	ComponentFrom []string          `help:"Attributes that name the component (KEY, KEY=REGEXP or =VALUE; repeat for more)." sep:"none" placeholder:"KEY"`
	SiteFrom      []string          `help:"Attributes that name the site, such as cloud.region." sep:"none" placeholder:"KEY"`
	ServerFrom    []string          `help:"Attributes that name the process." sep:"none" placeholder:"KEY"`
	CalleeFrom    []string          `help:"Attributes of a client's span that name whom it calls." sep:"none" placeholder:"KEY"`
	ClassFrom     []string          `help:"Attributes that name the class; span.name is the span's own name." sep:"none" placeholder:"KEY"`
	OwnerFrom     []string          `help:"Attributes that name whose data was asked for." sep:"none" placeholder:"KEY"`
	Site          map[string]string `help:"Another name for a site that an attribute names." placeholder:"VALUE=SITE"`
}

func (s *spanRules) rules() (r span.Rules, err error) {
	for _, f := range [...]struct {
		flag  string
		texts []string
		to    *[]span.Source
	}{
		{"--component-from", s.ComponentFrom, &r.Component},
		{"--site-from", s.SiteFrom, &r.Site},
		{"--server-from", s.ServerFrom, &r.Server},
		{"--callee-from", s.CalleeFrom, &r.Callee},
		{"--class-from", s.ClassFrom, &r.Class},
		{"--owner-from", s.OwnerFrom, &r.Owner},
	} {
		if *f.to, err = span.ParseSources(f.texts); err != nil {
			return r, fmt.Errorf("%w: %s: %w", errUsage, f.flag, err)
		}
	}
	r.Sites = s.Site
	return r, nil
}

// Run turns spans into a recording of calls.
func (c *importSpansCmd) Run(con *console) error {
	if err := c.check(c.Files...); err != nil {
		return err
	}
	rules, err := c.rules()
	if err != nil {
		return err
	}
	bad := &badLines{con: con, strict: c.Strict}
	o := spanfile.Options{
		Bad: bad.add, Format: spanfile.Format(c.Format), MaxSpans: c.MaxSpans, Window: c.MaxSpans, Rules: rules,
		Note: func(file, text string) { fmt.Fprintf(con.err, "%s: %s\n", file, text) },
	}
	if c.Service == "own" {
		o.Service = join.Own
	}
	o.Entries = map[string]join.Entries{"servers": join.EntryServers, "all": join.EntryAll, "none": join.EntryNone}[c.Entries]
	var stats join.Stats
	err = c.write(con, func(w *recording.Writer) (err error) {
		stats, err = spanfile.Read(con.ctx, c.Files, o, func(r *event.Request) error {
			if err := bad.err(); err != nil {
				return err
			}
			return w.Write(r)
		})
		return errors.Join(err, bad.err())
	})
	if stats.Read > 0 {
		err = errors.Join(err, printSpans(con, &stats))
	}
	if errors.Is(err, spanfile.ErrFormat) && c.Format == "" {
		return fmt.Errorf("%w (--format says which)", err)
	}
	return err
}

// spanTotals are the totals beside the account that are worth a line, with what
// they mean.
func spanTotals(s *join.Stats) []spanTotal {
	return []spanTotal{
		{"entries", s.Entries, "calls from outside"},
		{"one_sided", s.OneSided, "calls with one half alone"},
		{"skewed", s.Skewed, "calls between clocks that differ; nothing is corrected"},
		{"negative", s.Negative, "calls that took longer at the callee than its caller waited; network_us is negative"},
		{"asynchronous", s.Asynchronous, "calls that their server did not wait for"},
		{"no_duration", s.NoDuration, "spans without a duration"},
		{"backwards", s.Backwards, "spans that end before they begin"},
		{"gaps", s.Gaps, "spans in another process than their parent, with a server's span missing between"},
		{"forced", s.Forced, "traces closed early for want of room; see --max-spans"},
	}
}

type spanTotal struct {
	name string
	n    int64
	text string
}

// printSpans prints the account: what became of each span.
func printSpans(con *console, s *join.Stats) error {
	if con.json {
		account := map[string]int64{}
		for _, f := range join.Fates() {
			account[f.String()] = s.Account[f]
		}
		out := map[string]any{"spans": s.Read, "traces": s.Traces, "account": account}
		for _, t := range spanTotals(s) {
			out[t.name] = t.n
		}
		return json.NewEncoder(con.out).Encode(out)
	}
	fmt.Fprintf(con.out, "%s, in %d traces\n", &s.Account, s.Traces)
	return printTotals(con.out, spanTotals(s))
}

func printTotals(out io.Writer, totals []spanTotal) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, t := range totals {
		if t.n > 0 {
			fmt.Fprintf(w, "%d\t %s\n", t.n, strings.TrimSpace(t.text))
		}
	}
	return w.Flush()
}
