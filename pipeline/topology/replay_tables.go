package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/decider"
	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// tables is the policy of a kind whose commands are tables, and in a replay its decider
// beside that of placement. There it has no executor: recorded traffic goes where it
// went, whatever is decided, so that its tables are what would have been ordered window
// by window, not what would have come of it.
type tables struct {
	kind    control.Kind
	config  []byte
	factory decider.Factory
	ttl     time.Duration
	decider *decider.Decider
}

// tablesOf makes the policy of a kind, as serve and a replay do. The error wraps
// ErrOptions: what is wrong is in the file.
func tablesOf(cfg *config.Config, kind control.Kind) (*tables, error) {
	switch kind {
	case control.Split:
		p, err := newSplit(cfg)
		if err != nil {
			return nil, err
		}
		return &tables{kind: kind, config: p.Config(), factory: splitFactory, ttl: p.TTL()}, nil
	case control.Servers:
		p, err := newServers(cfg)
		if err != nil {
			return nil, err
		}
		return &tables{kind: kind, config: p.Config(), factory: serversFactory, ttl: p.TTL()}, nil
	case control.Coding:
		p, err := newCoding(cfg)
		if err != nil {
			return nil, err
		}
		return &tables{kind: kind, config: p.Config(), factory: codingFactory, ttl: p.TTL()}, nil
	}
	return nil, fmt.Errorf("tables of %s: %w", kind, ErrOptions)
}

// newTables makes the policies of the kinds beside placement that the configuration
// steers.
func (r *running) newTables() error {
	r.tables = nil
	for _, kind := range kindsOf(r.Config) {
		if kind == control.Placement {
			continue
		}
		t, err := tablesOf(r.Config, kind)
		if err != nil {
			return err
		}
		r.tables = append(r.tables, t)
	}
	return nil
}

// tablesOf is the policy of a kind, nil if the configuration does not steer it.
func (r *running) tablesOf(kind control.Kind) *tables {
	for _, t := range r.tables {
		if t.kind == kind {
			return t
		}
	}
	return nil
}

// startTables starts their deciders.
func (r *running) startTables(ctx context.Context) error {
	for _, t := range r.tables {
		client, err := r.bus.Client(ctx, "decider-"+string(t.kind))
		if err != nil {
			return err
		}
		t.decider, err = decider.New(decider.Options{
			Client: client, Config: t.config, Factory: t.factory, Mode: control.Act, Purpose: bus.Replay, TTL: t.ttl, Logger: r.Logger,
		})
		if err != nil {
			return err
		}
		r.parts.Start("decider of "+string(t.kind), t.decider.Run)
	}
	return nil
}

// catchUpTables waits until each kind has decided every window that the recording has
// closed. All of the recording's events are published by then.
func (r *running) catchUpTables(ctx context.Context) error {
	if len(r.tables) == 0 {
		return nil
	}
	client, err := r.bus.Client(ctx, "settle-tables")
	if err != nil {
		return err
	}
	defer client.Close()
	if err := covered(ctx, client); err != nil {
		return err
	}
	mark, err := watermarkOf(ctx, client, window.Fast)
	if err != nil || mark == window.NullInt {
		return err
	}
	for _, t := range r.tables {
		if err := t.catchUp(ctx, mark); err != nil {
			return err
		}
	}
	return nil
}

// catchUp waits until every window up to a time (µs) is decided.
func (t *tables) catchUp(ctx context.Context, mark int64) error {
	what := fmt.Sprintf("decisions of %s up to %s", t.kind, time.UnixMicro(mark).UTC().Format(time.RFC3339))
	return progress(ctx, what, func() (uint64, bool, error) {
		s := t.decider.Status()
		if s.Phase != decider.Deciding || s.Watermark.IsZero() || s.Watermark.UnixMicro() < mark {
			return uint64(s.Windows), false, nil
		}
		// It has read all. It answers between windows only: once it does, none is
		// left that can be closed.
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, _, err := t.decider.Explain(short, "")
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return uint64(s.Windows), false, nil
		}
		return uint64(s.Windows), err == nil, err
	})
}

// watermarkOf is the time (µs) that every partition's last commit has passed,
// window.NullInt while one has none.
func watermarkOf(ctx context.Context, client *bus.Client, group string) (int64, error) {
	floor := int64(window.NullInt)
	for p := range client.Partitions() {
		m, err := client.Last(ctx, subject.WindowsStream, subject.Windows(group, p))
		if errors.Is(err, bus.ErrNoMessage) {
			return window.NullInt, nil
		}
		if err != nil {
			return 0, err
		}
		c, err := window.CommitOf(m.Header, m.Data)
		if err != nil {
			return 0, fmt.Errorf("watermark of %s, partition %d: %w", group, p, err)
		}
		if p == 0 || c.Watermark < floor {
			floor = c.Watermark
		}
	}
	return floor, nil
}

// splits reads what was decided of split for the report; of none it is empty.
func (r *running) splits(ctx context.Context, client *bus.Client) (*report.Splits, error) {
	t := r.tablesOf(control.Split)
	if t == nil {
		return nil, nil
	}
	return report.ReadSplits(ctx, client, report.SplitsOf{Config: decider.ConfigDigest(t.config), Policy: r.Config.Split.Policy, Sites: siteNames(r.Config)})
}

// codings reads what was decided of coding for the report; of none it is empty.
func (r *running) codings(ctx context.Context, client *bus.Client) (*report.Codings, error) {
	t := r.tablesOf(control.Coding)
	if t == nil {
		return nil, nil
	}
	of := report.CodingsOf{Config: decider.ConfigDigest(t.config), Policy: r.Config.Coding.Policy, USDPerMillionReads: r.Config.Prices.StoreReads}
	for i := range r.Config.Coders {
		x := &r.Config.Coders[i]
		c := report.CodingsOfCoder{Name: x.Name}
		for _, s := range x.Stores {
			c.Stores = append(c.Stores, s.Name)
		}
		of.Coders = append(of.Coders, c)
	}
	return report.ReadCodings(ctx, client, of)
}

// servers reads what was decided of servers for the report; of none it is empty.
func (r *running) servers(ctx context.Context, client *bus.Client) (*report.Servers, error) {
	t := r.tablesOf(control.Servers)
	if t == nil {
		return nil, nil
	}
	of := report.ServersOf{Config: decider.ConfigDigest(t.config)}
	if err := json.Unmarshal(t.config, &of.Policy); err != nil {
		return nil, fmt.Errorf("configuration of servers: %w", err)
	}
	return report.ReadServers(ctx, client, of)
}

// CheckSplit makes the policy of split as serve and a replay would. The error wraps
// ErrOptions; nil too if the configuration splits nothing.
func CheckSplit(cfg *config.Config) error {
	if !cfg.Splits() {
		return nil
	}
	_, err := newSplit(cfg)
	return err
}
