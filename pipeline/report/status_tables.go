package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TableStatus is the last table of a scope, and who follows it.
type TableStatus struct {
	Scope  string         `json:"scope"`
	Epoch  uint64         `json:"epoch"`
	Mode   control.Mode   `json:"mode"`
	Window control.Window `json:"window"`
	Reason control.Reason `json:"reason"`
	At     time.Time      `json:"at"` // on the bus
	TTL    string         `json:"ttl"`
	// AgeS and LeftS are seconds since it came to the bus, and until its ttl is over,
	// below 0 since then: who follows it does as if there were none. Absent on the bus of a
	// replay, whose time is that of its recording.
	AgeS   *int64             `json:"age_s,omitempty"`
	LeftS  *int64             `json:"left_s,omitempty"`
	Rows   []control.SplitRow `json:"rows,omitempty"` // of kind split
	Probes []control.Probe    `json:"probes,omitempty"`
	// Coding is the table of kind coding.
	Coding *control.CodingTable `json:"coding,omitempty"`
	// Servers is the table of kind servers.
	Servers *control.ServersTable `json:"servers,omitempty"`
	// Routers are those that have answered a table of the scope not too long ago, by name and
	// target; of kind coding the coders, of kind servers the entry points and server switches.
	Routers []RouterStatus `json:"routers,omitempty"`
	// Acting is the server switch of the site that acts, StandingBy are those that wait for it
	// to go; of kind servers.
	Acting     string   `json:"acting,omitempty"`
	StandingBy []string `json:"standing_by,omitempty"`
}

// RouterStatus is a router's last answer to a scope.
type RouterStatus struct {
	By     string         `json:"by"`
	Target string         `json:"target,omitempty"`
	Epoch  uint64         `json:"epoch"`
	Status control.Status `json:"status"`
	Reason string         `json:"reason,omitempty"`
	At     time.Time      `json:"at"`
	// InForce is the last epoch that it has applied, 0 if none is known.
	InForce uint64 `json:"in_force,omitempty"`
	// Gone: nothing is heard of it any more, though it would say each second that it lives; of
	// kind servers.
	Gone bool `json:"gone,omitempty"`
}

// NotConcerned says that no row of the table is for what the router carries: it is
// neither silent nor failing, and has nothing of the scope in force.
func (r RouterStatus) NotConcerned() bool {
	return r.Status == control.Advised && r.Reason == control.NotConcerned
}

// Answer says in brief what the router has answered.
func (r RouterStatus) Answer() string {
	if r.NotConcerned() {
		return fmt.Sprintf("epoch %d: not concerned, it carries none of these calls", r.Epoch)
	}
	return fmt.Sprintf("epoch %d %s%s", r.Epoch, r.Status, withSpace(r.Reason))
}

// tables gathers the last table of each scope of a kind; now is zero where wall time
// says nothing.
func (s *Status) tables(ctx context.Context, client *bus.Client, k *KindStatus, now time.Time) error {
	subjects, err := subjectsOf(ctx, client, subject.CommandsStream, subject.CommandsOf(string(k.Kind)))
	if err != nil {
		return err
	}
	for _, subj := range subjects {
		m, err := client.Last(ctx, subject.CommandsStream, subj)
		if err != nil {
			return err
		}
		c, err := control.DecodeCommandOf(k.Kind, m.Data)
		if err != nil {
			s.Faults = append(s.Faults, fmt.Sprintf("%s, sequence %d: %v", subj, m.Seq, err))
			continue
		}
		k.Tables = append(k.Tables, tableStatus(c, m.Time.UTC(), now))
	}
	slices.SortFunc(k.Tables, func(a, b TableStatus) int { return cmp.Compare(a.Scope, b.Scope) })
	last := map[string]uint64{}
	for i := range k.Tables {
		last[k.Tables[i].Scope] = k.Tables[i].Epoch
	}
	answers, err := answersOf(ctx, client, k.Kind, last)
	for i := range k.Tables {
		t := &k.Tables[i]
		t.Routers = answers[t.Scope]
		if k.Kind == control.Servers && err == nil {
			err = t.alive(ctx, client, now)
		}
	}
	return err
}

// TableOf is the last table of a scope and who follows it; nil if the bus has none.
func TableOf(ctx context.Context, client *bus.Client, k control.Kind, scope string) (*TableStatus, error) {
	m, err := client.Last(ctx, subject.CommandsStream, subject.Commands(string(k), scope))
	if errors.Is(err, bus.ErrNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("table of %s: %w", scope, err)
	}
	c, err := control.DecodeCommandOf(k, m.Data)
	if err != nil {
		return nil, fmt.Errorf("table of %s, sequence %d: %w", scope, m.Seq, err)
	}
	now := clock.System().Now()
	purpose, err := client.Purpose(ctx)
	if err != nil {
		return nil, fmt.Errorf("table of %s: %w", scope, err)
	}
	if purpose == bus.Replay {
		now = time.Time{}
	}
	t := tableStatus(c, m.Time.UTC(), now)
	answers, err := answersOf(ctx, client, k, map[string]uint64{scope: t.Epoch})
	t.Routers = answers[scope]
	if k == control.Servers && err == nil {
		err = t.alive(ctx, client, now)
	}
	return &t, err
}

func tableStatus(c *control.Command, at, now time.Time) TableStatus {
	t := TableStatus{
		Scope: c.Scope, Epoch: c.Epoch, Mode: c.Mode, Window: c.Window, Reason: c.Reason, At: at, TTL: c.TTL, Coding: c.Coding, Servers: c.Servers,
	}
	if c.Split != nil {
		t.Rows, t.Probes = c.Split.Table, c.Split.Probes
	}
	ttl, err := time.ParseDuration(c.TTL)
	if now.IsZero() || err != nil { // A command is not decoded with another ttl.
		return t
	}
	age, left := int64(now.Sub(at)/time.Second), int64(math.Floor(at.Add(ttl).Sub(now).Seconds()))
	t.AgeS, t.LeftS = &age, &left
	return t
}

// subjectsOf are the subjects of a stream that match, ascending.
func subjectsOf(ctx context.Context, client *bus.Client, stream, match string) ([]string, error) {
	st, err := client.JS.Stream(ctx, client.Stream(stream))
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", client.Stream(stream), err)
	}
	info, err := st.Info(ctx, jetstream.WithSubjectFilter(client.Subject(match)))
	if err != nil {
		return nil, fmt.Errorf("subjects of %s: %w", client.Stream(stream), err)
	}
	var out []string
	for name := range info.State.Subjects {
		out = append(out, client.Bare(name))
	}
	slices.Sort(out)
	return out, nil
}

// answersOf are the last answers to tables of a kind, by scope, among the newest
// outcomes. last are the epochs of the last tables.
func answersOf(ctx context.Context, client *bus.Client, k control.Kind, last map[string]uint64) (map[string][]RouterStatus, error) {
	st, err := client.State(ctx, subject.OutcomesStream)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	from := uint64(0)
	if st.LastSeq > failuresWithin {
		from = max(st.FirstSeq, st.LastSeq-failuresWithin+1)
	}
	byScope := map[string]routerAnswers{}
	err = client.Each(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(string(k))}, from, func(m bus.Msg) error {
		o, err := control.DecodeOutcome(m.Data)
		if err != nil {
			return nil //nolint:nilerr // It is nobody's; its decider counts it.
		}
		if byScope[o.Scope] == nil {
			byScope[o.Scope] = routerAnswers{}
		}
		byScope[o.Scope].take(o, last[o.Scope])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	out := map[string][]RouterStatus{}
	for scope, a := range byScope {
		for _, targets := range a {
			out[scope] = slices.AppendSeq(out[scope], maps.Values(targets))
		}
		slices.SortFunc(out[scope], func(a, b RouterStatus) int {
			return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Target, b.Target))
		})
	}
	return out, nil
}

// routerAnswers are the last answers to a scope by router and target.
type routerAnswers map[string]map[string]RouterStatus

// take takes in an answer. One that names no target is for all that the router has. One
// that comes after the answer to a later table, up to the last, is no news: two may be
// answered at once. After one beyond the last it is: the decider has begun anew.
func (a routerAnswers) take(o *control.Outcome, last uint64) {
	if a[o.By] == nil {
		a[o.By] = map[string]RouterStatus{}
	}
	targets := []string{o.Target}
	if o.Target != "" {
		if r, ok := a[o.By][""]; ok {
			a[o.By][o.Target] = r // It has a name now.
			delete(a[o.By], "")
		}
	} else if len(a[o.By]) > 0 {
		targets = slices.Collect(maps.Keys(a[o.By]))
	}
	for _, target := range targets {
		before := a[o.By][target]
		if o.Epoch < before.Epoch && before.Epoch <= last {
			continue
		}
		r := RouterStatus{By: o.By, Target: target, Epoch: o.Epoch, Status: o.Status, Reason: o.Reason, At: o.At.UTC(), InForce: before.InForce}
		switch {
		case o.Status == control.Done || o.Status == control.AlreadyApplied:
			r.InForce = o.Epoch
		case r.NotConcerned():
			r.InForce = 0
		}
		a[o.By][target] = r
	}
}

// Follower is who follows the tables of a kind, in a word.
func Follower(k control.Kind) string {
	switch k {
	case control.Coding:
		return "coder"
	case control.Servers:
		return "follower"
	}
	return "router"
}

// printTables lists tables for a person.
func printTables(b *strings.Builder, k control.Kind, tables []TableStatus) {
	for i := range tables {
		t := &tables[i]
		fmt.Fprintf(b, "  %s: epoch %d", t.Scope, t.Epoch)
		if t.Mode != control.Act {
			fmt.Fprintf(b, " in mode %s, which nobody applies", t.Mode)
		}
		fmt.Fprintf(b, ", %s", t.Reason.Code)
		switch {
		case t.AgeS == nil:
			fmt.Fprintf(b, ", window to %s", Instant(t.Window.End))
		case *t.LeftS < 0:
			fmt.Fprintf(b, ", %s old: its ttl of %s is OVER, and %ss do without", seconds(*t.AgeS), t.TTL, Follower(k))
		default:
			fmt.Fprintf(b, ", %s old, in force for %s more", seconds(*t.AgeS), seconds(*t.LeftS))
		}
		if n := len(t.Probes); n > 0 {
			fmt.Fprintf(b, "; %d probes", n)
		}
		b.WriteString("\n")
		for _, r := range t.Rows {
			fmt.Fprintf(b, "    %s → %s: %s\n", r.FromSite, r.To, SharesText(r.Ratios))
		}
		if t.Coding != nil {
			fmt.Fprintf(b, "    %s, reads: %s\n    writes: %s\n", t.Coding.Policy, LimitText(t.Coding.Read), LimitText(t.Coding.Write))
		}
		if t.Servers != nil {
			fmt.Fprintf(b, "    %s\n", ServersText(t.Servers))
		}
		for _, r := range t.Routers {
			fmt.Fprintf(b, "    %s %s%s: ", Follower(k), r.By, withSpace(r.Target))
			switch {
			case r.Gone:
				fmt.Fprintf(b, "GONE, nothing is heard of it; last, at %s: ", Instant(r.At))
			case r.Epoch < t.Epoch:
				fmt.Fprintf(b, "HAS NOT ANSWERED this one; last, at %s: ", Instant(r.At))
			}
			b.WriteString(r.Answer())
			if r.InForce != r.Epoch && r.InForce > 0 {
				fmt.Fprintf(b, "; in force there: %d", r.InForce)
			}
			b.WriteString("\n")
		}
		if len(t.Routers) == 0 {
			fmt.Fprintf(b, "    no %s has answered\n", Follower(k))
		}
		if len(t.StandingBy) > 0 {
			fmt.Fprintf(b, "    standing by for the server switch %s: %s\n", t.Acting, strings.Join(t.StandingBy, ", "))
		}
	}
}

// SharesText writes the shares of a row in brief: sites without one are left out.
func SharesText(ratios []control.SplitRatio) string {
	var parts []string
	for _, r := range ratios {
		if r.Share > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %%", r.Site, trimmed(100*r.Share)))
		}
	}
	return strings.Join(parts, ", ")
}

// ServersText says in brief which servers are on.
func ServersText(t *control.ServersTable) string {
	text := fmt.Sprintf("%d on: %s", len(t.On), someOf(t.On))
	if len(t.Off) > 0 {
		text += fmt.Sprintf("; %d off: %s", len(t.Off), someOf(t.Off))
	}
	if len(t.ZoneWeights) > 1 {
		var parts []string
		for _, zone := range slices.Sorted(maps.Keys(t.ZoneWeights)) {
			parts = append(parts, fmt.Sprintf("%s %s", zone, trimmed(t.ZoneWeights[zone])))
		}
		text += "; zones " + strings.Join(parts, ", ")
	}
	return text
}

// mostNamed is how many names a line has.
const mostNamed = 8

// someOf lists names, the first of many.
func someOf(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}

// trimmed writes a number with at most two decimals.
func trimmed(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }

func withSpace(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}
