package topology

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"penstock/consumers/decider"
	"penstock/infra/bus"
	"penstock/pipeline/report"
	"penstock/producers/replay"
	"penstock/producers/replay/pace"
	"penstock/producers/replay/writes"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// ErrStores is returned when an owner's data is not where, or not what, it
// should be. The report names the owners; nothing was changed.
var ErrStores = errors.New("the stores do not hold what was written")

// behindLimit is how long parts may make no progress at the end.
const behindLimit = time.Minute

// covered waits until every group has committed all that EVENTS holds, so that
// the account and the matrices are whole.
func covered(ctx context.Context, client *bus.Client) error {
	events, err := client.State(ctx, subject.EventsStream)
	if err != nil {
		return err
	}
	for _, g := range window.Groups {
		for p := range client.Partitions() {
			if err := coveredBy(ctx, client, subject.Windows(g, p), events.LastSeq); err != nil {
				return fmt.Errorf("group %s, partition %d: %w", g, p, err)
			}
		}
	}
	return nil
}

func coveredBy(ctx context.Context, client *bus.Client, subj string, last uint64) error {
	return progress(ctx, fmt.Sprintf("commit that covers %d of EVENTS", last), func() (uint64, bool, error) {
		m, err := client.Last(ctx, subject.WindowsStream, subj)
		if errors.Is(err, bus.ErrNoMessage) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, err
		}
		c, err := window.CommitOf(m.Header, m.Data)
		if err != nil {
			return m.Seq, false, nil //nolint:nilerr // A pane: its commit comes next.
		}
		return m.Seq, c.Covered >= last, nil
	})
}

// report writes everything that stands in Out.
func (r *running) report(ctx context.Context, sum *replay.Summary) (*report.Report, error) {
	client, err := r.bus.Client(ctx, "report")
	if err != nil {
		return nil, err
	}
	var commands, decisions []string
	for _, k := range kindsOf(r.Config) {
		commands, decisions = append(commands, subject.CommandsOf(string(k))), append(decisions, subject.Decisions(string(k)))
	}
	if err := writeBodies(ctx, client, filepath.Join(r.Out, "commands.jsonl"), commands...); err != nil {
		return nil, err
	}
	if err := writeBodies(ctx, client, filepath.Join(r.Out, "decisions.jsonl"), decisions...); err != nil {
		return nil, err
	}
	splits, err := r.splits(ctx, client)
	if err != nil {
		return nil, err
	}
	codings, err := r.codings(ctx, client)
	if err != nil {
		return nil, err
	}
	servers, err := r.servers(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := report.WriteMatrices(ctx, client, r.Out, splits.Watch, codings.Watch, servers.Watch); err != nil {
		return nil, err
	}
	audit, err := report.NewAudit(ctx, client)
	if err != nil {
		return nil, err
	}
	rep := &report.Report{Run: sum.Run, Config: decider.ConfigDigest(r.config), Account: audit.Groups[0].Total, Incomplete: audit.Groups[0].Incomplete}
	r.collector.Fill(rep)
	splits.Fill(rep)
	codings.Fill(rep)
	servers.Fill(rep)
	r.noteRows(sum)
	if r.mover != nil && !r.Apply {
		rep.Stores = storesReport(&sum.Verify)
	}
	if r.Speed != pace.Max {
		rep.Schedule = &report.Schedule{Speed: r.Speed.String(), MaxLagMS: lagMS(sum.Lag.Max), P99LagMS: lagMS(sum.Lag.P99)}
	}
	if err := rep.Write(r.Out); err != nil {
		return nil, err
	}
	err = audit.Err()
	if s := rep.Stores; s != nil && len(s.Faults) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %s", ErrStores, s.Faults[0]))
	}
	return rep, err
}

// noteRows says what became of rows that no policy reads, and what to do.
func (r *running) noteRows(sum *replay.Summary) {
	if sum.Read == 0 && sum.Malformed == 0 {
		r.Note("nothing was in the recordings")
	}
	if sum.Future > 0 {
		r.Note(fmt.Sprintf("quarantined: %d rows lie more than %s (--max-skew) beyond the rows before them, and no ten rows follow that agree: "+
			"clocks that run ahead look like that, and so does the end of a thin recording; if these rows are right, give a greater --max-skew, such as 24h", sum.Future, r.maxSkew()))
	}
	if sum.Late > 0 {
		r.Note(fmt.Sprintf("late: %d rows came more than --disorder after rows that are later than they: they are in matrices/late.parquet, and no policy reads them; "+
			"a greater --disorder puts them in order", sum.Late))
	}
	if n := r.collector.Elsewhere(); n > 0 {
		r.Note(fmt.Sprintf("%d rows were served by a site that the configuration lacks: they are in no site's traffic", n))
	}
}

func (r *running) maxSkew() time.Duration {
	if r.MaxSkew > 0 {
		return r.MaxSkew
	}
	return replay.DefaultMaxSkew
}

func storesReport(v *writes.VerifyReport) *report.Stores {
	s := &report.Stores{Owners: v.Owners, Records: v.Records, Bytes: v.Bytes}
	for _, f := range v.Faults {
		s.Faults = append(s.Faults, fmt.Sprintf("owner %q at %s: %s", f.Owner, f.Site, f.What))
	}
	return s
}

func lagMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
