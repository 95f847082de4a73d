package decider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
)

// store keeps snapshots and configurations in the object bucket. A kind has two
// places for snapshots, written in turn, so that the latest two are there and
// one of them is whole even when the other is being written.
type store struct {
	client  *bus.Client
	objects jetstream.ObjectStore
	kind    control.Kind
	next    int  // place that the next snapshot goes to
	any     bool // there is a usable one
}

// stored is a snapshot that was read.
type stored struct {
	place int
	head  *snapshotHead
	rest  *bytes.Reader
}

const places = 2

// metaSequences and metaGroup describe a snapshot to whoever trims WINDOWS.
const (
	metaGroup     = "penstock.group"
	metaSequences = "penstock.windows"
)

func placeName(k control.Kind, place int) string {
	return "snapshot." + string(k) + "." + strconv.Itoa(place)
}

func configName(digest string) string {
	return "config." + strings.TrimPrefix(digest, "sha256:")
}

// readTries is how often an object is asked for that is described but does not
// come whole; readWithin bounds each. A chunk that is gone never comes.
const (
	readTries  = 3
	readWithin = 10 * time.Second
)

// read returns an object's body, nil if there is none. ErrSnapshot says that
// there is one and that it cannot be had whole, although the bus answers.
func (s *store) read(ctx context.Context, name string, within time.Duration) (body []byte, err error) {
	for range readTries {
		info, err := s.objects.GetInfo(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("object %s: %w", name, err)
		}
		try, cancel := context.WithTimeout(ctx, within+time.Duration(info.Chunks)*100*time.Millisecond)
		body, err = s.objects.GetBytes(try, name)
		cancel()
		if err == nil {
			return body, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("object %s: %w: %w", name, ErrSnapshot, err)
}

// snapshots returns the readable snapshots, the newest first, and why the others
// are not readable. Err is only that of the bus.
func (s *store) snapshots(ctx context.Context) (found []stored, faults []error, err error) {
	for place := range places {
		body, err := s.read(ctx, placeName(s.kind, place), readWithin)
		switch {
		case errors.Is(err, ErrSnapshot):
			faults = append(faults, err)
			continue
		case err != nil:
			return nil, nil, err
		case body == nil:
			continue
		}
		head, rest, err := openSnapshot(body)
		if err != nil {
			faults = append(faults, fmt.Errorf("snapshot %d: %w", place, err))
			continue
		}
		found = append(found, stored{place: place, head: head, rest: rest})
	}
	slices.SortFunc(found, func(a, b stored) int {
		return cmp.Or(cmp.Compare(b.head.Loop.Record, a.head.Loop.Record), cmp.Compare(b.head.Loop.Windows, a.head.Loop.Windows))
	})
	return found, faults, nil
}

// put writes a snapshot over the older one.
func (s *store) put(ctx context.Context, body []byte, group string, sequences []uint64) error {
	meta := jetstream.ObjectMeta{
		Name:     placeName(s.kind, s.next),
		Metadata: map[string]string{metaGroup: group, metaSequences: joinSequences(sequences)},
	}
	if err := putObject(ctx, s.client, s.objects, meta, body); err != nil {
		return fmt.Errorf("store snapshot of %s: %w", s.kind, err)
	}
	s.next, s.any = (s.next+1)%places, true
	return nil
}

// covered returns, per partition, the sequence of WINDOWS behind which the two
// latest snapshots of every kind that reads the group go on. False: not all of
// them have two, so nothing may be trimmed. A kind that has never run has none
// and does not count; a decider that serves stores its first one before it
// decides anything.
func (s *store) covered(ctx context.Context, group string, partitions int) (least []uint64, ok bool, err error) {
	for _, k := range control.Kinds {
		n := 0
		for place := range places {
			info, err := s.objects.GetInfo(ctx, placeName(k, place))
			if errors.Is(err, jetstream.ErrObjectNotFound) {
				continue
			}
			if err != nil {
				return nil, false, fmt.Errorf("look at snapshot of %s: %w", k, err)
			}
			if info.Metadata[metaGroup] != group {
				continue
			}
			seqs, err := splitSequences(info.Metadata[metaSequences])
			if err != nil {
				return nil, false, fmt.Errorf("snapshot of %s: %w", k, err)
			}
			if len(seqs) != partitions {
				return nil, false, nil
			}
			if least == nil {
				least = seqs
			}
			for p := range least {
				least[p] = min(least[p], seqs[p])
			}
			n++
		}
		if n != 0 && n != places {
			return nil, false, nil
		}
	}
	return least, least != nil, nil
}

// putConfig keeps a configuration by its digest.
func (s *store) putConfig(ctx context.Context, config []byte) error {
	name := configName(ConfigDigest(config))
	if _, err := s.objects.GetInfo(ctx, name); err == nil {
		return nil
	} else if !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("look at %s: %w", name, err)
	}
	return putObject(ctx, s.client, s.objects, jetstream.ObjectMeta{Name: name}, config)
}

// config returns the configuration of a digest, nil if the bucket has none.
func (s *store) config(ctx context.Context, digest string) ([]byte, error) {
	b, err := s.objects.GetBytes(ctx, configName(digest))
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", digest, err)
	}
	if got := ConfigDigest(b); got != digest {
		return nil, fmt.Errorf("configuration %s has digest %s: %w", digest, got, ErrStateLost)
	}
	return b, nil
}

// joinSequences writes sequences as headers carry them.
func joinSequences(seqs []uint64) string {
	var b strings.Builder
	for i, s := range seqs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(s, 10))
	}
	return b.String()
}

func splitSequences(s string) ([]uint64, error) {
	var out []uint64
	for _, f := range strings.Split(s, ",") {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("sequences %.80q: %w", s, err)
		}
		out = append(out, n)
	}
	return out, nil
}
