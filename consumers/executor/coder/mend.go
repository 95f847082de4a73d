package coder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// mending is what is left to do with a version: to bring it into its intended coding, or
// to write blobs that lack. One goroutine does it.
type mending struct {
	c       *Coder
	v       *held
	targets []target
	landed  []bool // of each target
	intent  string // of the targets that are at new places; empty: there are none
	places  []object.Place
	why     string
}

// mending plans what is left to do with a version.
func (c *Coder) mending(v *object.Version, rest catalog.Rest, why string) *mending {
	m := &mending{c: c, v: &held{v, rest}, why: why}
	attempt := newID()[:8]
	if v.Shape.Staged() {
		shape := v.Shape.Meant()
		m.intent = v.ID + "." + attempt
		for i := range shape.Blobs() {
			p := object.Place{Store: c.home(v, i), Key: c.blobKey(v.ID, i, attempt)}
			m.targets = append(m.targets, target{shape, i, p})
			m.places = append(m.places, p)
		}
	} else {
		m.places = slices.Clone(v.Places)
		for _, i := range rest.Lacking {
			if store := c.home(v, i); v.Places[i] == (object.Place{}) || store != v.Places[i].Store {
				m.intent = v.ID + "." + attempt
				m.places[i] = object.Place{Store: store, Key: c.blobKey(v.ID, i, attempt)}
			}
			// What is for a dead store waits for it, and is not read in vain.
			if s := c.named[m.places[i].Store]; s != nil && !s.isDead() {
				m.targets = append(m.targets, target{v.Shape, i, m.places[i]})
			}
		}
	}
	m.landed = make([]bool, len(m.targets))
	return m
}

// home is the store where a blob of a version is to be: its own if that lives, else one
// that lives and has no other blob of the version, else its own again.
func (c *Coder) home(v *object.Version, blob int) string {
	own := ""
	if blob < len(v.Places) {
		own = v.Places[blob].Store
	}
	if s := c.named[own]; s != nil && !s.isDead() {
		return own
	}
	if v.Shape.Layout == object.Shared {
		return c.stores[0].Name()
	}
	for _, s := range c.pick(turnOf(v.ID), len(c.stores)) {
		if !s.isDead() && !slices.ContainsFunc(v.Places, func(p object.Place) bool { return p.Store == s.Name() }) {
			return s.Name()
		}
	}
	return own
}

// begin opens the intent for new places.
func (m *mending) begin(ctx context.Context) error {
	if m.intent == "" {
		return nil
	}
	i := catalog.Intent{ID: m.intent, Since: m.c.o.Clock.Now()}
	for _, t := range m.targets {
		if t.blob >= len(m.v.Places) || m.v.Places[t.blob] != t.place {
			i.Places = append(i.Places, t.place)
		}
	}
	return m.c.catalog.Begin(ctx, i)
}

// fromStores rewrites the targets from what the stores have of the version.
func (m *mending) fromStores(ctx context.Context) error {
	shape := m.v.Shape
	l, err := m.c.memory.await(ctx, m.v.Coding, min(shape.Size, shape.Segment), 1)
	if err != nil {
		return err
	}
	defer l.give()
	d, err := l.decoder(m.v.Version)
	if err != nil {
		return err
	}
	defer l.keepDecoder(d)
	p := m.c.newPour(m.targets)
	defer p.end(errShut)
	for segment := range shape.Segments() {
		piece := object.Piece{Segment: segment, To: shape.SegmentBytes(segment), Last: shape.K - 1}
		if err := m.c.fetchSegment(ctx, m.v, d, piece, true, true); err != nil {
			return err
		}
		err := p.feedAll(ctx, segment == shape.Segments()-1, func(i int) ([]byte, error) {
			first, count := m.targets[i].shape.Strips(m.targets[i].blob)
			return d.Repair(first, count)
		})
		if err != nil {
			return err
		}
	}
	m.landed = p.have()
	return nil
}

// conclude tells the catalog what came of it. It tells whether anything is left.
func (m *mending) conclude(ctx context.Context) (left bool, err error) {
	var landed []int
	lacking := slices.Clone(m.v.rest.Lacking)
	if m.v.Shape.Staged() {
		lacking = nil
	}
	stays := m.v.rest.Staged && !m.v.Shape.Staged() // it is of another coding
	for j, t := range m.targets {
		lacking = slices.DeleteFunc(lacking, func(i int) bool { return i == t.blob })
		if m.landed[j] {
			landed = append(landed, t.blob)
		} else {
			lacking = append(lacking, t.blob)
			if !m.v.Shape.Staged() {
				m.places[t.blob] = m.v.Places[t.blob]
			}
		}
	}
	if len(landed) == 0 {
		m.c.abandon(m.intent)
		return true, fmt.Errorf("%w: no blob has landed", ErrTooFew)
	}
	if m.intent == "" {
		err = m.c.catalog.Landed(ctx, m.v.ID, landed...)
	} else {
		var doc *object.Version
		if doc, err = m.v.Lie(m.targets[0].shape.Cut, m.places); err == nil {
			slices.Sort(lacking)
			err = m.c.catalog.Settle(ctx, catalog.SettleInput{
				Version: m.v.ID, Document: doc, Intents: []string{m.intent},
				Rest: catalog.Rest{Staged: stays, Lacking: lacking},
			})
		}
	}
	switch {
	case errors.Is(err, catalog.ErrNoVersion):
		return false, nil // it was overwritten or deleted meanwhile, and its blobs go
	case err != nil:
		m.c.abandon(m.intent)
		return true, err
	}
	if m.v.Shape.Staged() {
		m.c.count(EventSettled, "done", 1)
	} else {
		m.c.count(EventRepaired, m.why, int64(len(landed)))
	}
	return stays || len(lacking) > 0, nil
}

// mend does what is left to do with a version, from what the stores have of it. The
// caller has claimed it.
func (c *Coder) mend(ctx context.Context, id, why string) (left bool, err error) {
	v, rest, release, err := c.catalog.HoldVersion(id)
	if errors.Is(err, catalog.ErrNoVersion) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer release()
	older := v.Coding != c.code
	switch {
	case older && c.alive() >= c.code.N || older && c.code.Layout == object.Shared:
		return false, c.recode(ctx, v)
	case !older && rest.Staged && !v.Shape.Staged(): // its coding is in force again
		rest.Staged = false
		return !rest.None(), c.catalog.Settle(ctx, catalog.SettleInput{Version: id, Rest: rest})
	case rest.None():
		return older, nil
	}
	m := c.mending(v, rest, why)
	if len(m.targets) == 0 {
		return true, nil
	}
	if err := m.begin(ctx); err != nil {
		return true, err
	}
	if err := m.fromStores(ctx); err != nil {
		c.abandon(m.intent)
		return true, err
	}
	return m.conclude(ctx)
}
