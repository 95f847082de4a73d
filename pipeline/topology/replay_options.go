package topology

import (
	"context"
	"strconv"
	"time"

	"penstock/consumers/decider"
	"penstock/infra/publisher"
	"penstock/producers/replay"
	"penstock/producers/replay/writes"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

// observer tells the report of what happens, and the hook of points.
type observer struct{ r *running }

// Row passes a row on.
func (o observer) Row(q *event.Request, recorded string) { o.r.collector.Row(q, recorded) }

// Window passes an answered window on.
func (o observer) Window(end int64, d *control.Decision, moves []control.Move, outcomes []control.Outcome) {
	o.r.Hook("window")
	o.r.collector.Window(end, d, moves, outcomes)
}

// options are the replay's own: where rows come from, where they go, and what
// the result follows from.
func (r *running) options(ctx context.Context) (*replay.Options, error) {
	mode, err := r.routed()
	if err != nil {
		return nil, err
	}
	client, err := r.bus.Client(ctx, "replay")
	if err != nil {
		return nil, err
	}
	o := &replay.Options{
		Client: client, Allowed: allowed(&r.policy), BeforeVerify: r.settle, Disorder: r.Disorder, Imported: r.known, MaxSkew: r.MaxSkew,
		MaxLag: r.MaxLag, Logger: r.Logger, NoWait: r.NoWait, Observer: observer{r}, Open: r.source.open, Progress: r.Progress, Route: mode, Run: r.RunID,
		Speed: r.Speed, StateDir: r.State, Strict: r.Strict, Until: r.Until, Width: r.Config.Placement.Window.Std(),
		Fingerprint: replay.Fingerprint{
			"recordings": r.digest, "policy": decider.ConfigDigest(r.config), "owner_depth": strconv.Itoa(r.source.log.OwnerDepth),
			"geoip": r.source.geo, "users": userKeyPrint(r.source.key),
			"partitions": strconv.Itoa(r.Config.Bus.Partitions), "batch_rows": strconv.Itoa(r.Config.Bus.BatchRows),
		},
		NewPublisher: func(ctx context.Context, run string, acked []uint64) (replay.Publisher, error) {
			return publisher.New(ctx, publisher.Options{
				Client: client, Entry: "replay", Run: run, Partitions: client.Partitions(), MaxRows: r.Config.Bus.BatchRows,
				Acked: acked, Logger: r.Logger,
			})
		},
	}
	// Where nothing is said a run is called as before there was something to say.
	for _, t := range r.tables {
		o.Fingerprint[string(t.kind)] = decider.ConfigDigest(t.config)
	}
	if r.source.formatDigest != "" {
		o.Fingerprint["format"] = r.source.formatDigest
	}
	if z := r.source.log.Zone; z != time.UTC {
		o.Fingerprint["zone"] = z.String()
	}
	for i, s := range routeSites(r.Config) {
		st, ok := r.stores[r.Config.Sites[i].Name].(writes.Store)
		if !ok {
			st = nil
		}
		o.Sites = append(o.Sites, replay.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon, Store: st})
	}
	return o, nil
}
