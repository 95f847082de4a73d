package topology

import (
	"context"
	"fmt"
	"time"

	"penstock/infra/errorkind"
	"penstock/infra/geo"
	"penstock/producers/accesslog"
	"penstock/producers/recording"
	"penstock/producers/replay"
	"penstock/producers/replay/route"
	"penstock/schemas/event"
)

// source opens the recordings of a replay, each time in the same way.
type source struct {
	files  []string
	format recording.Format
	choice accesslog.ChoiceOptions
	log    accesslog.Options
	// formatDigest is part of the fingerprint.
	formatDigest string
	geo          string // digest of the places, part of the fingerprint
	note         func(string)
	key          string
	quiet        bool // notes were given once
	bad          int  // lines that were named
}

// maxNamed is how many malformed lines a replay names; REJECTS has samples of
// more, and the account has their number.
const maxNamed = 5

// name tells of a malformed line, the first few times.
func (s *source) name(b *recording.BadLine) {
	s.bad++
	switch {
	case s.bad <= maxNamed:
		s.note("malformed: " + b.Error())
	case s.bad == maxNamed+1:
		s.note("malformed: and more; samples of all are on the bus under rejects.>, --strict fails at the first")
	}
}

// openSource prepares the input: the places of addresses, and the key of the
// users' hash, which comes from the configuration or else from the content.
func (r *running) openSource(_ context.Context) error {
	format, choice, digest, err := recording.Named(r.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	s := &source{files: r.Files, format: format, choice: choice, formatDigest: digest, note: r.Note, key: r.Config.Privacy.UserKey}
	if s.key == "" {
		// The run's name is a hash too, but an override of it must not rename
		// the users.
		s.key = r.digest
	}
	s.log = accesslog.Options{Key: []byte(s.key), OwnerDepth: max(r.OwnerDepth, 1)}
	if s.log.Zone, err = zoneOf(r.Zone); err != nil {
		return err
	}
	if r.GeoIP != "" {
		db, err := geo.Open(r.GeoIP)
		if err != nil {
			return err
		}
		s.log.Geo, s.geo = db, db.Digest()
	}
	r.source = s
	return nil
}

// zoneOf is the one of times that name none. "Local" is refused: what follows from
// it would be another thing on another machine.
func zoneOf(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errorkind.Errorf(ErrOptions, "zone %s: name it, such as Europe/Zurich", name)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, errorkind.Errorf(ErrOptions, "zone: %w", err)
	}
	return l, nil
}

// open opens the input at its beginning.
func (s *source) open(bad func(replay.Bad)) (replay.Source, error) {
	note := func(file, text string) {
		if !s.quiet {
			s.note(file + ": " + text)
		}
	}
	r, err := recording.Open(s.files, recording.Options{
		AccessLog: s.log, Log: s.choice, Format: s.format, Note: note,
		Bad: func(b recording.BadLine) {
			if bad != nil {
				s.name(&b)
				bad(replay.Bad(b))
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// routed returns how requests find their site: as asked for, else follow,
// unless one of the first rows says which site served it.
func (r *running) routed() (route.Mode, error) {
	switch r.Route {
	case route.Follow.String():
		return route.Follow, nil
	case route.Recorded.String():
		return route.Recorded, nil
	}
	src, err := r.source.open(nil)
	if err != nil {
		return route.Follow, err
	}
	defer src.Close()
	r.source.quiet = true
	var q event.Request
	for range 1000 {
		if err := src.Next(&q); err != nil {
			// Its end or its fault shows when it is replayed.
			break
		}
		if q.ToSite != "" {
			r.Note("the recording says which site served: --route recorded (give --route follow for a what-if)")
			return route.Recorded, nil
		}
	}
	return route.Follow, nil
}
