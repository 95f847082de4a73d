package coder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// scrubbing is a scrub under way.
type scrubbing struct {
	c        *Coder
	o        ScrubOptions
	report   Report
	progress Progress
	tell     func(Progress)
	number   uint64 // see unreadable
	beyond   int64
}

// Scrub reads every strip of every version and says what is wrong; with Repair it makes
// it right. progress, if any, is told after each version, from one goroutine. Versions
// that come meanwhile may not be looked at. It returns ctx's error and the catalog's;
// the report is of what was done until then.
func (c *Coder) Scrub(ctx context.Context, o ScrubOptions, progress func(Progress)) (Report, error) {
	leave, err := c.enter()
	if err != nil {
		return Report{}, err
	}
	defer leave()
	s := &scrubbing{c: c, o: o, tell: progress, report: Report{Faults: make(map[string]int64)}, number: c.unreadable.begin()}
	err = s.versions(ctx)
	s.end(err == nil)
	if err == nil && o.Orphans {
		err = s.orphans(ctx)
	}
	return s.report, err
}

// versions looks at all of them.
func (s *scrubbing) versions(ctx context.Context) error {
	now := s.c.catalog.Stats()
	s.progress.VersionsTotal, s.progress.BytesTotal = now.Versions, now.Bytes+now.PartBytes
	for after := ""; ; {
		ids, err := s.c.catalog.Versions(after, page)
		if err != nil {
			return catalogError(err)
		}
		for _, id := range ids {
			after = id
			if err := s.version(ctx, id); err != nil {
				return err
			}
		}
		if len(ids) < page {
			return nil
		}
	}
}

// version looks at one version.
func (s *scrubbing) version(ctx context.Context, id string) error {
	v, rest, release, err := s.c.catalog.HoldVersion(id)
	if errors.Is(err, catalog.ErrNoVersion) {
		return nil // gone meanwhile
	}
	if err != nil {
		return catalogError(err)
	}
	defer release()
	s.report.Versions++
	bad, err := s.look(ctx, &held{v, rest})
	if err != nil {
		return err
	}
	unmeant := v.Shape.Staged() || v.Coding != s.c.code
	if unmeant {
		s.report.Staged++
	}
	s.progress.Versions++
	s.progress.Bytes += v.Shape.Size
	if s.tell != nil {
		s.tell(s.progress)
	}
	if !s.o.Repair || len(bad) == 0 && !unmeant {
		return nil
	}
	return s.repair(ctx, id, bad)
}

// repair has what was found written anew.
func (s *scrubbing) repair(ctx context.Context, id string, bad []int) error {
	if err := s.c.catalog.Lack(ctx, id, bad...); err != nil {
		if errors.Is(err, catalog.ErrNoVersion) {
			return nil
		}
		return catalogError(err)
	}
	for !s.c.claim(id) {
		if err := s.c.o.Clock.Sleep(ctx, claimEvery); err != nil {
			return err
		}
	}
	defer s.c.unclaim(id)
	left, err := s.c.mend(ctx, id, "scrub")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil || left:
		s.report.Failed += int64(max(1, len(bad)))
		s.c.retried("scrub", id, err)
	default:
		s.report.Repaired += int64(len(bad))
	}
	return nil
}

// claimEvery is how often a scrub looks whether a version is free that somebody mends.
const claimEvery = 5 * time.Millisecond

// look reads all strips of a version, and gives the blobs that are to be written anew.
func (s *scrubbing) look(ctx context.Context, v *held) (bad []int, err error) {
	l, err := s.c.memory.await(ctx, v.Coding, min(v.Shape.Size, v.Shape.Segment), 1)
	if err != nil {
		return nil, err
	}
	defer l.give()
	d, err := l.decoder(v.Version)
	if err != nil {
		return nil, err
	}
	defer l.keepDecoder(d)
	found := inspection{lost: make(map[int]int), unreached: make(map[int]bool)}
	whole := v.NewWhole()
	for segment := range v.Shape.Segments() {
		began := s.c.o.Clock.Now()
		n, err := s.segment(ctx, v, d, segment, &found)
		if err != nil {
			return nil, err
		}
		if d.Lacking() > 0 {
			found.unreadable = true
		} else if _, err := d.WriteRange(whole, 0, v.Shape.SegmentBytes(segment)); err != nil {
			found.unreadable = true
			s.report.Faults["mismatch"]++
		}
		if err := s.slow(ctx, n, s.c.o.Clock.Now().Sub(began)); err != nil {
			return nil, err
		}
	}
	if !found.unreadable && whole.Err() != nil {
		found.unreadable = true
		s.report.Faults["mismatch"]++
	}
	return s.add(v, &found)
}

// inspection is what a scrub has found in a version.
type inspection struct {
	bad        []int        // blobs with strips that aren't whole
	lost       map[int]int  // of each blob: strips that are missing
	unreached  map[int]bool // blobs whose stores failed
	unreadable bool
}

// add adds what was found to the report, and gives the blobs to write anew.
func (s *scrubbing) add(v *held, found *inspection) ([]int, error) {
	if found.unreadable {
		if err := s.lost(v, len(found.unreached) > 0); err != nil {
			return nil, err
		}
	}
	_, per := v.Shape.Strips(0)
	for _, n := range found.lost {
		if n == per*v.Shape.Segments() {
			s.report.Lacking++
		}
	}
	s.report.Unreachable += int64(len(found.unreached))
	bad := slices.DeleteFunc(found.bad, func(i int) bool { return found.unreached[i] })
	for _, i := range v.rest.Lacking {
		if !slices.Contains(bad, i) {
			bad = append(bad, i)
		}
	}
	return bad, nil
}

// segment reads all strips of a segment. It says how many bytes that were.
func (s *scrubbing) segment(ctx context.Context, v *held, d *object.Decoder, segment int, found *inspection) (bytes int64, err error) {
	if err := d.Begin(segment); err != nil {
		return 0, err
	}
	f := &fetch{c: s.c, v: v, d: d, segment: segment, last: -1, strips: make([]stripState, v.Shape.N)}
	defer f.decide()
	blobs := f.blobs()
	for _, blob := range blobs {
		bytes += blob.Bytes
	}
	errs := make([]error, len(blobs))
	ended := make(chan struct{})
	planned := false
	err = s.c.queue.Do(ctx, &queue.Request{
		Op: queue.Read, Background: true, Rest: queue.Finish, Ended: func() { close(ended) },
		Plan: func(queue.Code) queue.Plan {
			planned = true
			tasks := make([]queue.Task, len(blobs))
			for i, blob := range blobs {
				tasks[i] = queue.Task{Store: v.Places[blob.Blob].Store, Bytes: blob.Bytes, Run: func(ctx context.Context) error {
					ctx, cancel := s.c.limited(ctx)
					defer cancel()
					_, errs[i] = f.get(ctx, f.round, blob)
					return nil // all are wanted, whatever comes of the others
				}}
			}
			return queue.Plan{Tasks: tasks, Need: len(tasks)}
		},
	})
	if planned {
		<-ended
	}
	if err != nil {
		return bytes, queueError(err)
	}
	s.report.Bytes += bytes
	s.judge(v, d, blobs, errs, found)
	return bytes, nil
}

// judge notes what is wrong with the strips of a segment.
func (s *scrubbing) judge(v *held, d *object.Decoder, blobs []object.Chunk, errs []error, found *inspection) {
	unreached := make(map[int]bool)
	for i, blob := range blobs {
		s.report.Strips += int64(blob.Count)
		if err := errs[i]; err != nil && !gone(err) && !errors.Is(err, errDamaged) {
			unreached[blob.Blob], found.unreached[blob.Blob] = true, true
		}
	}
	_, per := v.Shape.Strips(0)
	for _, fault := range d.Faults(nil) {
		blob := fault.Strip / per
		if !v.Landed(blob) || unreached[blob] {
			continue
		}
		s.report.Faults[fault.Kind.String()]++
		if fault.Kind == object.Missing {
			found.lost[blob]++
		}
		if !slices.Contains(found.bad, blob) {
			found.bad = append(found.bad, blob)
		}
	}
}

// slow waits so long that the rate is kept.
func (s *scrubbing) slow(ctx context.Context, bytes int64, took time.Duration) error {
	if s.o.Rate <= 0 {
		return nil
	}
	due := time.Duration(float64(bytes) / float64(s.o.Rate) * float64(time.Second))
	if due <= took {
		return nil
	}
	return s.c.o.Clock.Sleep(ctx, due-took)
}

// orphans looks for blobs that nothing names, in all stores.
func (s *scrubbing) orphans(ctx context.Context) error {
	for _, store := range s.c.stores {
		for after := ""; ; {
			list, err := store.List(ctx, s.c.prefix(), after, maxList)
			if err != nil {
				return fmt.Errorf("orphans in %s: %w", store.Name(), err)
			}
			for _, e := range list {
				after = e.Key
				if err := s.orphan(ctx, store, e.Key); err != nil {
					return err
				}
			}
			if len(list) < maxList {
				break
			}
		}
	}
	return nil
}

// orphan looks whether anything names a blob.
func (s *scrubbing) orphan(ctx context.Context, store *store, key string) error {
	id := s.c.versionOf(key)
	if id == "" {
		id = "none" // a name that the coder doesn't give, under its own prefix
	}
	place := object.Place{Store: store.Name(), Key: key}
	if v, _, err := s.c.catalog.Version(id); err == nil && slices.Contains(v.Places, place) {
		return nil
	}
	strays, err := s.c.catalog.Strays(ctx, id, place)
	if err != nil || len(strays) == 0 {
		return catalogError(err)
	}
	// It may have been listed before it was deleted.
	list, err := store.List(ctx, key, "", 1)
	if err != nil || len(list) == 0 || list[0].Key != key {
		return err
	}
	s.report.Orphans++
	if !s.o.Repair {
		return nil
	}
	n, err := s.c.catalog.Discard(ctx, id, place)
	s.report.Deleted += int64(n)
	s.c.count(EventDeleted, "orphan", int64(n))
	s.c.kick()
	return catalogError(err)
}
