package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

const (
	// full is the share of a stream's bound from which it is looked at (P04).
	full = 0.8
	// skewLook and skewBroken are how far the server's clock may be from this
	// one's.
	skewLook, skewBroken = time.Second, 10 * time.Second
)

// bus opens the bus and compares what is there with what should be.
func (x *examination) bus(ctx context.Context) *bus.Bus {
	short, cancel := x.within(ctx)
	defer cancel()
	b, err := x.Options.Bus(short)
	switch {
	case errors.Is(err, bus.ErrVersion):
		x.add("bus", "server", Broken, err.Error(), "atomic batches with conditions are what decisions stand on")
		return nil
	case err != nil:
		x.add("bus", "server", Broken, err.Error(), "is the address right, and does the server run with JetStream?")
		return nil
	}
	where := "embedded"
	if !b.Embedded() {
		where = "at " + b.URL()
	}
	x.fine("bus", "server", "reached %s; streams have %d replicas", where, b.Replicas())
	if !b.Embedded() && b.Replicas() < 3 {
		x.add("bus", "replicas", Look, "a single server: what it holds is as safe as its disk", "a cluster of three survives the loss of one")
	}
	return b
}

// onBus looks at what needs a bus.
func (x *examination) onBus(ctx context.Context, b *bus.Bus) {
	short, cancel := x.within(ctx)
	defer cancel()
	err := b.Check(short)
	var diff *bus.DiffError
	switch {
	case errors.As(err, &diff):
		diffs := slices.DeleteFunc(diff.Diffs, func(d bus.Diff) bool {
			// It is in memory: every start of an embedded bus makes it anew.
			return b.Embedded() && d.Missing() && strings.HasPrefix(d.Of, "bucket ") && strings.HasSuffix(d.Of, subject.MembersKV)
		})
		if len(diffs) == 0 {
			x.fine("bus", "streams", "as they should be")
		}
		for _, d := range diffs {
			hint := "nothing is changed by itself: change the stream, or the configuration"
			if d.Missing() {
				hint = "penstock init makes it"
			}
			x.add("bus", "streams", Broken, d.String(), hint)
		}
	case err != nil:
		x.add("bus", "streams", Unknown, err.Error(), "")
	default:
		x.fine("bus", "streams", "as they should be")
	}
	if x.client, err = b.Client(short, "doctor"); err != nil {
		x.add("bus", "client", Broken, err.Error(), "")
		return
	}
	x.width()
	x.fill(ctx)
	x.permissions(ctx)
	x.clock(ctx)
	x.decisions(ctx)
	x.traffic(ctx)
}

// width compares placement's windows with those of the bus.
func (x *examination) width() {
	if x.Config == nil {
		return
	}
	want, have := x.Config.Placement.Window, config.Duration(x.client.Widths().Of(window.Traffic))
	if want != have {
		x.add("bus", "placement.window", Broken, fmt.Sprintf("%s, and the bus was made for windows of %s", want, have),
			"serve refuses to start: configure what the bus has, or keep apart with --prefix")
	}
}

// fill looks at how full the streams are.
func (x *examination) fill(ctx context.Context) {
	for _, name := range subject.Streams {
		short, cancel := x.within(ctx)
		info, err := x.info(short, name)
		cancel()
		if err != nil {
			x.add("bus", name, Unknown, err.Error(), "")
			continue
		}
		c, s := info.Config, info.State
		switch {
		case c.MaxBytes <= 0:
			x.fine("bus", name, "%d messages, no bound on bytes", s.Msgs)
		case float64(s.Bytes) >= full*float64(c.MaxBytes) && c.Discard == jetstream.DiscardNew:
			x.add("bus", name, Broken, fmt.Sprintf("%d of %d bytes: what comes beyond is refused", s.Bytes, c.MaxBytes), "is its reader running? see penstock status")
		case float64(s.Bytes) >= full*float64(c.MaxBytes):
			x.add("bus", name, Look, fmt.Sprintf("%d of %d bytes: old messages are about to go", s.Bytes, c.MaxBytes), "are they read in time? see penstock status")
		default:
			x.fine("bus", name, "%d messages, %.1f %% of its bytes", s.Msgs, 100*float64(s.Bytes)/float64(c.MaxBytes))
		}
	}
}

func (x *examination) info(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	st, err := x.client.JS.Stream(ctx, x.client.Stream(name))
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", name, err)
	}
	return st.CachedInfo(), nil
}

// permissions finds out what this user may do, without doing it: a message is
// sent under a condition that can't hold. That the server refuses the condition
// shows that it would have taken the message.
func (x *examination) permissions(ctx context.Context) {
	tries := []struct {
		what, subject string
		err           error
	}{
		{what: "publish events", subject: "events.0.doctor"},
		{what: "publish windows", subject: "windows.owners.0"},
		{what: "publish decisions", subject: subject.Decisions(string(control.Placement))},
		{what: "publish outcomes", subject: "outcomes.placement.doctor"},
		{what: "publish rejects", subject: "rejects.doctor.doctor"},
		{what: "write locations", subject: "$KV." + x.client.Stream(subject.LocationsKV) + ".doctor"},
		{what: "write operator switches", subject: "$KV." + x.client.Stream(subject.OperatorKV) + ".doctor"},
	}
	// All at once: what isn't allowed is never answered.
	short, cancel := x.within(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range tries {
		all.Go(func() { tries[i].err = x.mayPublish(short, tries[i].subject) })
	}
	all.Wait()
	for _, p := range tries {
		err := p.err
		switch {
		case err == nil:
			x.fine("permissions", p.what, "allowed")
		case errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, context.DeadlineExceeded):
			x.add("permissions", p.what, Look, "not allowed, or not answered", "parts that need it can't run under this user")
		default:
			x.add("permissions", p.what, Unknown, err.Error(), "")
		}
	}
}

// mayPublish returns nil if the server refuses nothing but the condition.
func (x *examination) mayPublish(ctx context.Context, subj string) error {
	if subj[0] != '$' {
		subj = x.client.Subject(subj)
	}
	m := nats.NewMsg(subj)
	// No stream ends there: sequences count from 1 by 1.
	m.Header.Set(jetstream.ExpectedLastSeqHeader, "18446744073709551614")
	_, err := x.client.JS.PublishMsg(ctx, m)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return nil
	}
	if err == nil {
		return fmt.Errorf("the server took a message whose condition cannot hold")
	}
	return err
}

// clock compares the server's clock with this one's. The server's time lies
// between the moments before and after it was asked.
func (x *examination) clock(ctx context.Context) {
	short, cancel := x.within(ctx)
	defer cancel()
	before := x.Clock.Now()
	info, err := x.info(short, subject.EventsStream)
	after := x.Clock.Now()
	if err != nil || info.TimeStamp.IsZero() {
		x.add("clock", "server", Unknown, "the server did not tell its time", "")
		return
	}
	skew := time.Duration(0)
	switch {
	case info.TimeStamp.Before(before):
		skew = before.Sub(info.TimeStamp)
	case info.TimeStamp.After(after):
		skew = info.TimeStamp.Sub(after)
	}
	text := fmt.Sprintf("%s apart from the bus server's", skew.Round(time.Millisecond))
	hint := "are both kept by NTP? events with a wrong time are late or from the future"
	switch {
	case skew >= skewBroken:
		x.add("clock", "this machine", Broken, text, hint)
	case skew >= skewLook:
		x.add("clock", "this machine", Look, text, hint)
	default:
		x.fine("clock", "this machine", "%s", text)
	}
}
