package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Init makes the streams and buckets that are missing. What is there already is
// compared and left alone: a difference is returned as a *DiffError, after
// everything that was missing has been made. Calling it again changes nothing.
func (b *Bus) Init(ctx context.Context) error {
	if err := b.seen(); err != nil {
		return err
	}
	b.meet(ctx)
	for _, c := range b.streams() {
		if _, err := b.js.CreateStream(ctx, c); err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("make stream %s: %w", c.Name, err)
		}
	}
	for _, c := range b.keyValues() {
		_, err := b.js.CreateKeyValue(ctx, c)
		if err == nil && c.Bucket == b.name(subject.LocationsKV) {
			err = b.allowBatches(ctx, "KV_"+c.Bucket)
		}
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return fmt.Errorf("make bucket %s: %w", c.Bucket, err)
		}
	}
	c := b.objects()
	if _, err := b.js.CreateObjectStore(ctx, c); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("make object bucket %s: %w", c.Bucket, err)
	}
	return b.Check(ctx)
}

// allowBatches lets a bucket that was just made take many entries with one sync,
// which the client library has no word for. A bucket without is slower to import
// to, no more.
func (b *Bus) allowBatches(ctx context.Context, stream string) error {
	c, err := b.config(ctx, stream)
	if err != nil || c == nil || c.AllowAtomicPublish {
		return err
	}
	c.AllowAtomicPublish = true
	_, err = b.js.UpdateStream(ctx, *c)
	return err
}

// Check compares the streams and buckets with what Init would make and returns
// a *DiffError that lists each field with what is there and what should be. It
// changes nothing.
func (b *Bus) Check(ctx context.Context) error {
	if err := b.seen(); err != nil {
		return err
	}
	b.meet(ctx)
	var diffs []Diff
	for _, want := range b.streams() {
		have, err := b.config(ctx, want.Name)
		if err != nil {
			return err
		}
		if have == nil {
			diffs = append(diffs, Diff{Of: "stream " + want.Name, Field: fieldStream, Have: fieldNone, Want: "one"})
			continue
		}
		diffs = append(diffs, b.compareStream(*have, want)...)
	}
	for _, want := range b.keyValues() {
		have, err := b.config(ctx, "KV_"+want.Bucket)
		if err != nil {
			return err
		}
		diffs = append(diffs, compareBucket(have, "bucket "+want.Bucket, want)...)
	}
	o := b.objects()
	have, err := b.config(ctx, "OBJ_"+o.Bucket)
	if err != nil {
		return err
	}
	diffs = append(diffs, compareBucket(have, "object bucket "+o.Bucket,
		jetstream.KeyValueConfig{Storage: o.Storage, Replicas: o.Replicas})...)
	if len(diffs) > 0 {
		return &DiffError{Diffs: diffs}
	}
	return nil
}

// config is that of a stream, nil if there is none.
func (b *Bus) config(ctx context.Context, name string) (*jetstream.StreamConfig, error) {
	return configOf(ctx, b.js, name)
}

func configOf(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamConfig, error) {
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	return &s.CachedInfo().Config, nil
}

func compareBucket(have *jetstream.StreamConfig, of string, want jetstream.KeyValueConfig) []Diff {
	if have == nil {
		return []Diff{{Of: of, Field: fieldBucket, Have: fieldNone, Want: "one"}}
	}
	d := differ{of: of}
	d.compare("storage", have.Storage, want.Storage)
	d.compare("replicas", have.Replicas, want.Replicas)
	d.compare("ttl", have.MaxAge, want.TTL)
	if want.History > 0 {
		d.compare("history", have.MaxMsgsPerSubject, int64(want.History))
	}
	return d.diffs
}

// window reads the width of the owners' windows from the metadata of WINDOWS. A
// bus of before says nothing, and has those of an hour.
func (b *Bus) window(ctx context.Context, js jetstream.JetStream) (time.Duration, error) {
	name := b.name(subject.WindowsStream)
	have, err := configOf(ctx, js, name)
	if err != nil {
		return 0, err
	}
	if have == nil {
		return 0, fmt.Errorf("no stream %s at %s (make it with: penstock init): %w", name, b.address(), ErrNotReady)
	}
	said := have.Metadata[metaWindow]
	if said == "" {
		return window.Traffic.Width, nil
	}
	d, err := time.ParseDuration(said)
	if err == nil {
		err = window.CheckWidth(d)
	}
	if err != nil {
		return 0, fmt.Errorf("stream %s: metadata %s is %q: %w: %w", name, metaWindow, said, err, ErrNotReady)
	}
	return d, nil
}

// partitions reads P from the metadata of EVENTS.
func (b *Bus) partitions(ctx context.Context, js jetstream.JetStream) (int, error) {
	name := b.name(subject.EventsStream)
	have, err := configOf(ctx, js, name)
	if err != nil {
		return 0, err
	}
	if have == nil {
		return 0, fmt.Errorf("no stream %s at %s (make it with: penstock init): %w", name, b.address(), ErrNotReady)
	}
	p, err := strconv.Atoi(have.Metadata[metaPartitions])
	if err != nil || p < 1 || p > MaxPartitions {
		return 0, fmt.Errorf("stream %s: metadata %s is %q, expected 1 to %d: %w",
			name, metaPartitions, have.Metadata[metaPartitions], MaxPartitions, ErrNotReady)
	}
	return p, nil
}
