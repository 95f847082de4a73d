package doctor

import (
	"context"
	"errors"
	"fmt"

	"penstock/infra/objectstore"
	"penstock/pipeline/config"
)

// probe is the owner that stands for all others when a store is tried. Its copy
// is never live, and is gone at once.
const probe = "penstock doctor"

// stores reaches each store.
func (x *examination) stores(ctx context.Context) {
	if x.tablesOnly() {
		x.fine("stores", "configuration", "no site has a store, and none is needed: %s, and no data is moved", x.instead())
		return
	}
	short, cancel := x.within(ctx)
	all, closer, err := x.Options.Stores(short, x.client)
	cancel()
	if err != nil {
		x.add("stores", "configuration", Broken, err.Error(), "")
		return
	}
	defer x.closing("stores", "closing", closer)
	for _, site := range x.Config.Sites {
		what := "store of " + site.Name
		st, err := config.ParseStore(site.Store)
		if err == nil && st.Kind == "jetstream" && x.client == nil {
			x.add("stores", what, Unknown, "it is on the bus, which was not reached", "")
			continue
		}
		if s := all[site.Name]; s != nil {
			x.store(ctx, what, s)
		}
	}
}

func (x *examination) store(ctx context.Context, what string, s objectstore.Store) {
	ctx, cancel := x.within(ctx)
	defer cancel()
	m, err := s.Stat(ctx, probe)
	if err != nil {
		x.add("stores", what, Broken, err.Error(), "the mover answers failed for moves from and to it")
		return
	}
	c := s.Capabilities()
	promise := "with a write barrier"
	if !c.Barrier {
		promise = "without a write barrier"
	}
	if c.Durable {
		promise += ", durable"
	}
	x.fine("stores", what, "reached; %s", promise)
	if !c.Barrier {
		x.add("stores", what, Look, "has no write barrier: a write during a move may be left behind", "stop writers to an owner while it is moved, or use a server that honours conditions")
	}
	if x.ReadOnly {
		return
	}
	if err := tryWriting(ctx, s, m); err != nil {
		x.add("stores", what, Broken, "can't be written to: "+err.Error(), "the mover needs to read, write and delete")
		return
	}
	x.fine("stores", what, "can be written to")
}

// tryWriting makes an empty closed copy and removes it. What an earlier look left
// behind when it was killed is taken over.
func tryWriting(ctx context.Context, s objectstore.Store, have objectstore.Mark) error {
	mark := objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "doctor"}
	if have.State == objectstore.Absent {
		if err := s.Mark(ctx, probe, have, mark); err != nil && !errors.Is(err, objectstore.ErrMarked) {
			return fmt.Errorf("mark: %w", err)
		}
	} else if have != mark {
		return fmt.Errorf("owner %q is taken: it is %s", probe, have)
	}
	if err := s.Delete(ctx, probe, mark); err != nil && !errors.Is(err, objectstore.ErrMarked) {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
