package bus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Keys in the metadata of EVENTS, the last one of WINDOWS: what every client must
// agree on.
const (
	metaPartitions = "penstock.partitions"
	metaPurpose    = "penstock.purpose"
	metaWindow     = "penstock.window" // absent: an hour
)

const day = 24 * time.Hour

// streams are the five of DESIGN §3 as this bus should have them. A replay's
// have no age: it trims what is covered, and may be resumed at any time.
//
// Direct reads are off everywhere: a last message read from a replica that lags
// would look like somebody else's write, or like none.
func (b *Bus) streams() []jetstream.StreamConfig {
	events := b.stream(subject.EventsStream, 7*day, b.opts.EventsMaxBytes, "events.>")
	events.Metadata = map[string]string{
		metaPartitions: fmt.Sprint(b.wantPartitions()),
		metaPurpose:    b.opts.Purpose.String(),
	}
	if b.opts.Purpose == Replay {
		events.Discard = jetstream.DiscardNew
	}
	windows := b.stream(subject.WindowsStream, 3*day, 50e9, "windows.>")
	windows.Discard = jetstream.DiscardNew
	windows.AllowAtomicPublish = true
	windows.Metadata = map[string]string{metaWindow: b.wantWindow().String()}
	commands := b.stream(subject.CommandsStream, 0, -1, "decisions.>", "commands.>")
	commands.AllowAtomicPublish = true
	outcomes := b.stream(subject.OutcomesStream, 30*day, -1, "outcomes.>")
	outcomes.Duplicates = time.Hour
	outcomes.AllowAtomicPublish = true // for imports of many locations
	rejects := b.stream(subject.RejectsStream, 7*day, -1, "rejects.>")
	return []jetstream.StreamConfig{events, windows, commands, outcomes, rejects}
}

func (b *Bus) stream(name string, age time.Duration, bytes int64, subjects ...string) jetstream.StreamConfig {
	if b.opts.Purpose == Replay {
		age = 0
	}
	for i, s := range subjects {
		subjects[i] = b.subject(s)
	}
	return jetstream.StreamConfig{
		Name: b.name(name), Subjects: subjects, Storage: jetstream.FileStorage,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxAge: age, MaxBytes: bytes, MaxMsgs: -1, MaxMsgsPerSubject: -1,
		Replicas: b.Replicas(), Duplicates: 2 * time.Minute,
	}
}

// keyValues are the buckets. What members say holds for 5 s and needs no disk.
func (b *Bus) keyValues() []jetstream.KeyValueConfig {
	kv := func(name string) jetstream.KeyValueConfig {
		return jetstream.KeyValueConfig{Bucket: b.name(name), History: 1, Storage: jetstream.FileStorage, Replicas: b.Replicas()}
	}
	members := kv(subject.MembersKV)
	members.TTL, members.Storage = 5*time.Second, jetstream.MemoryStorage
	return []jetstream.KeyValueConfig{kv(subject.LocationsKV), kv(subject.OperatorKV), kv(subject.EntriesKV), members}
}

func (b *Bus) objects() jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{Bucket: b.name(subject.SnapshotsBucket), Storage: jetstream.FileStorage, Replicas: b.Replicas()}
}

func (b *Bus) wantPartitions() int {
	if b.opts.Partitions == 0 {
		return DefaultPartitions
	}
	return b.opts.Partitions
}

func (b *Bus) wantWindow() time.Duration { return cmp.Or(b.opts.Window, window.Traffic.Width) }

// compareStream returns how have differs from want in what Penstock relies on.
// What a server fills in by itself is left alone. The partitions and the width of
// windows count only if the caller named them.
func (b *Bus) compareStream(have, want jetstream.StreamConfig) []Diff {
	d := differ{of: "stream " + want.Name}
	slices.Sort(have.Subjects)
	slices.Sort(want.Subjects)
	d.compare("subjects", have.Subjects, want.Subjects)
	d.compare("storage", have.Storage, want.Storage)
	d.compare("retention", have.Retention, want.Retention)
	d.compare("discard", have.Discard, want.Discard)
	d.compare("max_age", have.MaxAge, want.MaxAge)
	d.compare("max_bytes", bound(have.MaxBytes), bound(want.MaxBytes))
	d.compare("max_msgs", bound(have.MaxMsgs), bound(want.MaxMsgs))
	d.compare("max_msgs_per_subject", bound(have.MaxMsgsPerSubject), bound(want.MaxMsgsPerSubject))
	d.compare("replicas", have.Replicas, want.Replicas)
	d.compare("duplicate_window", have.Duplicates, want.Duplicates)
	if want.Name != b.name(subject.OutcomesStream) || have.AllowAtomicPublish {
		// An OUTCOMES of before takes no batches: imports take longer, no more.
		d.compare("allow_atomic", have.AllowAtomicPublish, want.AllowAtomicPublish)
	}
	d.compare("allow_direct", have.AllowDirect, want.AllowDirect)
	d.compare("no_ack", have.NoAck, want.NoAck)
	d.compare("sealed", have.Sealed, want.Sealed)
	d.compare("deny_purge", have.DenyPurge, want.DenyPurge)
	for _, k := range slices.Sorted(maps.Keys(want.Metadata)) {
		if k == metaPartitions && b.opts.Partitions == 0 && have.Metadata[k] != "" {
			continue
		}
		if k == metaWindow && b.opts.Window == 0 {
			continue
		}
		if k == metaWindow && have.Metadata[k] == "" {
			have.Metadata = map[string]string{k: window.Traffic.Width.String()}
		}
		d.compare("metadata "+k, quote(have.Metadata[k]), quote(want.Metadata[k]))
	}
	return d.diffs
}

type differ struct {
	of    string
	diffs []Diff
}

func (d *differ) compare(field string, have, want any) {
	h, w := fmt.Sprint(have), fmt.Sprint(want)
	if h != w {
		d.diffs = append(d.diffs, Diff{Of: d.of, Field: field, Have: h, Want: w})
	}
}

// bound spells a limit: the server knows several numbers for "none".
func bound(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func quote(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
