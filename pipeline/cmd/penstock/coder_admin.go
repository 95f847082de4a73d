package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/admin"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
)

// coderFlags find the address at which a running coder answers its operator.
type coderFlags struct {
	Config string `short:"c" required:"" help:"The configuration." type:"existingfile"`
	Coder  string `help:"Its name among coders of the configuration, if there are several." placeholder:"NAME"`
	Admin  string `help:"Where it answers, instead of the configuration's." placeholder:"HOST:PORT"`
}

func (f *coderFlags) client() (*admin.Client, error) {
	cfg, err := config.Load(f.Config)
	if err != nil {
		return nil, err
	}
	x, err := topology.CoderOf(cfg, f.Coder)
	if err != nil {
		return nil, err
	}
	c := &admin.Client{Addr: x.Admin}
	if f.Admin != "" {
		c.Addr = f.Admin
	}
	if c.Addr == "" {
		return nil, fmt.Errorf("coder %s has no admin address in the configuration: --admin says where it answers: %w", x.Name, errUsage)
	}
	if c.Token, err = topology.SecretFile("token_file", x.TokenFile); err != nil {
		return nil, err
	}
	return c, nil
}

type coderStatusCmd struct{ coderFlags }

// Run prints what a coder is at.
func (c *coderStatusCmd) Run(con *console) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	s, err := client.Status(con.ctx)
	if err != nil {
		return err
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(s)
	}
	printCoder(con.out, &s)
	return nil
}

func printCoder(w io.Writer, s *admin.Status) {
	fmt.Fprintf(w, "coder %s, layout %s: %d objects in %d buckets, %s\n", s.Coder, s.Layout, s.Objects, s.Buckets, report.Bytes(s.Bytes))
	if s.Unreadable > 0 {
		fmt.Fprintf(w, "UNREADABLE: %d versions, of which too few strips are whole though all their stores answered\n", s.Unreadable)
	}
	printLastScrub(w, s)
	fmt.Fprintf(w, "codes now: read (%d,%d), write (%d,%d), ", s.Read.N, s.Read.K, s.Write.N, s.Write.K)
	if s.Epoch == 0 {
		fmt.Fprintln(w, "by the default: the bus holds no table for it")
	} else {
		fmt.Fprintf(w, "by table %d", s.Epoch)
		if s.Until != nil {
			fmt.Fprintf(w, ", good for %s", s.Until.Sub(s.Now).Round(time.Second))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "queue: %d wait (smoothed %.3f), %d of %d connections in use\n", s.Backlog, s.Smoothed, s.Connections, s.Limit)
	fmt.Fprintf(w, "not in their intended coding: %d (%d to settle, %d to repair, %d to look at); blobs to delete: %d (%d once more); uploads under way: %d\n", s.Unintended, s.Staged, s.Lacking, s.Unseen, s.Deletes, s.Repeats, s.Uploads)
	for _, st := range s.Stores {
		state := "answers"
		switch {
		case st.Absent:
			fmt.Fprintf(w, "store %s: ABSENT: it has no owner marker though chunks are in it, so that nothing is read from it or written to it. Mount its disk, or set its address right; if what it held is lost for good: penstock coder store-is-new %s\n", st.Name, st.Name)
			continue
		case st.Dead:
			state = "DEAD: asked last, and probed"
		}
		fmt.Fprintf(w, "store %s: %s, a chunk takes %.1f ms, %d failures in a row\n", st.Name, state, st.DelayMs, st.Failures)
	}
	if s.Scrub != nil {
		p := s.Scrub.Progress
		fmt.Fprintf(w, "scrub: under way, %d of %d versions\n", p.Versions, p.VersionsTotal)
	}
}

// printLastScrub says what the last scrub found, and as a fault what it left.
func printLastScrub(w io.Writer, s *admin.Status) {
	last := s.LastScrub
	if last == nil || last.Report == nil {
		return
	}
	ended := last.Began.Add(time.Duration(last.Seconds * float64(time.Second)))
	when := fmt.Sprintf("ended %s, %s ago", ended.UTC().Format(time.RFC3339), s.Now.Sub(ended).Round(time.Second))
	if !last.Repair {
		when += ", without repair"
	}
	if last.Error != "" {
		when += ", before all was looked at: " + last.Error
	}
	if leftBy(last.Report, last.Repair) == 0 {
		fmt.Fprintf(w, "last scrub: %s (%s)\n", scrubText(last.Report), when)
		return
	}
	fmt.Fprintf(w, "LAST SCRUB FOUND %s; of %s (%s)\n", strings.Join(findings(last.Report), ", "), lookedAt(last.Report), when)
	printLost(w, last.Report)
}

// maxPrinted is how many unreadable versions are printed; JSON has all that the coder names.
const maxPrinted = 20

// printLost names the versions that a scrub found unreadable.
func printLost(w io.Writer, r *coder.Report) {
	printed := r.Lost[:min(len(r.Lost), maxPrinted)]
	for _, n := range printed {
		fmt.Fprintf(w, "UNREADABLE %s\n", lostText(&n))
	}
	if more := r.Unreadable - int64(len(printed)); more > 0 {
		fmt.Fprintf(w, "UNREADABLE and %d more: --json names %d in all\n", more, len(r.Lost))
	}
}

// lostText is bucket/key and what of it; what a terminal would not show as it is, quoted.
func lostText(n *coder.Name) string {
	text := n.Bucket + "/" + n.Key
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		text = quoted
	}
	if n.Part > 0 {
		text += fmt.Sprintf(" part %d", n.Part)
	}
	if n.Upload != "" {
		text += fmt.Sprintf(" of upload %s under way", n.Upload)
	}
	text += ", version " + n.Version
	if n.Bucket == "" {
		text += ": overwritten or deleted meanwhile"
	}
	if n.Unsure {
		text += ": some of its stores did not answer"
	}
	return text
}

type coderStoreIsNewCmd struct {
	coderFlags
	Store string `arg:"" help:"Its name in the configuration."`
}

// Run says that a store is a new one.
func (c *coderStoreIsNewCmd) Run(con *console) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	t, err := client.TakeIn(con.ctx, c.Store)
	if err != nil {
		return err
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(t)
	}
	fmt.Fprintf(con.out, "store %s is taken for a new one: chunks of %d versions are written into it; penstock coder status tells how far that is\n", t.Store, t.Versions)
	return nil
}

type coderScrubCmd struct {
	coderFlags
	Repair  bool        `help:"Write anew what is lacking or damaged, and delete blobs that nothing names (with --orphans)."`
	Orphans bool        `help:"Look for blobs that nothing names, too."`
	Rate    config.Rate `help:"Most bytes read a time, such as 50MB/s." placeholder:"RATE"`
}

// Run scrubs: exit code 1 if anything was found that was not repaired.
func (c *coderScrubCmd) Run(con *console) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	o := coder.ScrubOptions{Repair: c.Repair, Orphans: c.Orphans, Rate: c.Rate.In(time.Second)}
	var tell func(admin.Progress)
	if con.terminal {
		tell = func(p admin.Progress) {
			fmt.Fprintf(con.err, "\r%d of %d versions, %s of %s ", p.Versions, p.VersionsTotal, report.Bytes(p.Bytes), report.Bytes(p.BytesTotal))
		}
	}
	r, err := client.Scrub(con.ctx, o, tell)
	if con.terminal {
		fmt.Fprintln(con.err)
	}
	if err != nil {
		return err
	}
	if con.json {
		if err := json.NewEncoder(con.out).Encode(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(con.out, scrubText(&r))
		printLost(con.out, &r)
	}
	return leftOf(&r, c.Repair)
}

// leftOf is an error if a scrub has left anything that is not as it should be.
func leftOf(r *coder.Report, repair bool) error {
	if leftBy(r, repair) == 0 {
		return nil
	}
	return fmt.Errorf("not all is as it should be: %s", scrubText(r))
}

// leftBy counts what a scrub has left that is not as it should be.
func leftBy(r *coder.Report, repair bool) int64 {
	left := r.Unreachable + r.Unreadable + r.Failed
	if !repair {
		left += r.Lacking + r.Orphans
		for _, n := range r.Faults {
			left += n
		}
	}
	return left
}

// scrubText says what a scrub looked at and found.
func scrubText(r *coder.Report) string {
	return strings.Join(append([]string{lookedAt(r)}, findings(r)...), ", ")
}

func lookedAt(r *coder.Report) string {
	return fmt.Sprintf("%d versions, %s read", r.Versions, report.Bytes(r.Bytes))
}

// findings says what a scrub found and did, nothing of stores that are whole.
func findings(r *coder.Report) (all []string) {
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		all = append(all, fmt.Sprintf("%d strips %s", r.Faults[kind], kind))
	}
	for _, part := range [...]struct {
		n    int64
		what string
	}{
		{r.Lacking, "blobs lacking"},
		{r.Unreachable, "blobs in stores that do not answer"},
		{r.Unreadable, "versions UNREADABLE"},
		{r.Staged, "versions not in their intended coding"},
		{r.Orphans, "blobs that nothing names"},
		{r.Repaired, "blobs repaired"},
		{r.Deleted, "blobs deleted"},
		{r.Failed, "blobs that could not be repaired"},
	} {
		if part.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return all
}
