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
	next    int // place that the next snapshot goes to
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

// snapshots returns the readable snapshots, the newest first, and why the others
// are not readable. Err is only that of the bus.
func (s *store) snapshots(ctx context.Context) (found []stored, faults []error, err error) {
	for place := range places {
		body, err := s.objects.GetBytes(ctx, placeName(s.kind, place))
		switch {
		case errors.Is(err, jetstream.ErrObjectNotFound):
			continue
		case errors.Is(err, jetstream.ErrDigestMismatch):
			faults = append(faults, fmt.Errorf("snapshot %d: %w: %w", place, ErrSnapshot, err))
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("snapshot %d of %s: %w", place, s.kind, err)
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
	s.next = (s.next + 1) % places
	return nil
}

// covered returns, per partition, the least sequence of WINDOWS that a snapshot
// of any kind which reads the group still needs to be read after. False: fewer
// than two snapshots of this kind are there, so nothing may be trimmed.
func (s *store) covered(ctx context.Context, group string, partitions int) ([]uint64, bool, error) {
	var least []uint64
	own := 0
	for _, k := range control.Kinds {
		for place := range places {
			info, err := s.objects.GetInfo(ctx, placeName(k, place))
			if errors.Is(err, jetstream.ErrObjectNotFound) {
				continue
			}
			if err != nil {
				return nil, false, fmt.Errorf("look at snapshot of %s: %w", k, err)
			}
			seqs, err := splitSequences(info.Metadata[metaSequences])
			if info.Metadata[metaGroup] != group {
				continue
			}
			if err != nil || len(seqs) != partitions {
				return nil, false, nil
			}
			if k == s.kind {
				own++
			}
			if least == nil {
				least = seqs
			}
			for p := range least {
				least[p] = min(least[p], seqs[p])
			}
		}
	}
	return least, own == places, nil
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
