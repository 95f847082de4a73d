package topology

import (
	"context"
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

// splitting is the decider of split beside that of placement. It has no executor:
// recorded traffic goes where it went, whatever is decided, so that its tables are
// what would have been ordered window by window, not what would have come of it.
type splitting struct {
	config  []byte
	ttl     time.Duration
	decider *decider.Decider
}

// newSplitting makes the policy, nil where the configuration has nothing to split.
func (r *running) newSplitting() (*splitting, error) {
	if !r.Config.Splits() {
		return nil, nil
	}
	p, err := newSplit(r.Config)
	if err != nil {
		return nil, err
	}
	return &splitting{config: p.Config(), ttl: p.TTL()}, nil
}

// startSplit starts the decider, if there is one.
func (r *running) startSplit(ctx context.Context) error {
	if r.split == nil {
		return nil
	}
	client, err := r.bus.Client(ctx, "decider-split")
	if err != nil {
		return err
	}
	d, err := decider.New(decider.Options{
		Client: client, Config: r.split.config, Factory: splitFactory, Mode: control.Act, Purpose: bus.Replay,
		TTL: r.split.ttl, Logger: r.Logger,
	})
	if err != nil {
		return err
	}
	r.split.decider = d
	r.parts.Start("decider of split", d.Run)
	return nil
}

// catchUpSplit waits until split has decided every window that the recording has
// closed. All of the recording's events are published by then.
func (r *running) catchUpSplit(ctx context.Context) error {
	if r.split == nil {
		return nil
	}
	client, err := r.bus.Client(ctx, "settle-split")
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
	what := "decisions of split up to " + time.UnixMicro(mark).UTC().Format(time.RFC3339)
	return progress(ctx, what, func() (uint64, bool, error) {
		s := r.split.decider.Status()
		if s.Phase != decider.Deciding || s.Watermark.IsZero() || s.Watermark.UnixMicro() < mark {
			return uint64(s.Windows), false, nil
		}
		// It has read all. It answers between windows only: once it does, none is
		// left that can be closed.
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, _, err := r.split.decider.Explain(short, "")
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
	if r.split == nil {
		return nil, nil
	}
	return report.ReadSplits(ctx, client, report.SplitsOf{Config: decider.ConfigDigest(r.split.config), Policy: r.Config.Split.Policy, Sites: siteNames(r.Config)})
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
