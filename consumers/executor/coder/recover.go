package coder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/shipping"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// catalogFile is the catalog's name in the folder of the state.
const catalogFile = "catalog.db"

// openState opens the catalog and claims the stores for it. What a dead process had begun
// and not made visible is queued for deletion by that, and what it had left to do goes on
// when the coder runs. With Adopt a catalog is rebuilt where there is none, or where the
// stores belong to another one.
func (c *Coder) openState(ctx context.Context) error {
	if err := os.MkdirAll(c.o.State, 0o750); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	path := filepath.Join(c.o.State, catalogFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && c.o.Adopt {
		if err := c.rebuild(ctx, path); err != nil {
			return err
		}
	}
	err := c.openCatalog(ctx, path)
	if errors.Is(err, shipping.ErrOwned) && c.o.Adopt {
		if err := os.Rename(path, path+".replaced"); err != nil {
			return fmt.Errorf("state: %w", err)
		}
		if err := c.rebuild(ctx, path); err != nil {
			return err
		}
		err = c.openCatalog(ctx, path)
	}
	if errors.Is(err, shipping.ErrOwned) {
		return fmt.Errorf("%w: %w", ErrOwner, err)
	}
	return err
}

// rebuild makes the catalog of what the stores have of it, and takes them over. Stores
// that nobody has used are no fault.
func (c *Coder) rebuild(ctx context.Context, path string) error {
	if err := c.forgetCoding(); err != nil {
		return err
	}
	r, err := shipping.Rebuild(ctx, shipping.RebuildOptions{
		Coder: c.o.Name, Need: c.logNeed(), Path: path, Stores: c.rebuildable(ctx), Patience: c.o.TaskTimeout,
	})
	if errors.Is(err, shipping.ErrNoLog) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rebuild the catalog: %w", err)
	}
	c.log.Warn().Uint64("changes", r.Seq).Strs("torn", r.Torn).Strs("silent", r.Silent).
		Msg("catalog is rebuilt from the stores; changes of the last moments before may be lost")
	return nil
}

func (c *Coder) openCatalog(ctx context.Context, path string) (err error) {
	c.catalog, err = catalog.Open(path, catalog.Options{Coder: c.o.Name})
	if errors.Is(err, catalog.ErrDamaged) || errors.Is(err, catalog.ErrFormat) {
		return fmt.Errorf("state: %w; with an empty state folder, --adopt reads the catalog back from the stores", err)
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	c.restarted()
	if err := c.tidy(); err != nil {
		return errors.Join(fmt.Errorf("state: %w", err), c.catalog.Close())
	}
	c.shipper, err = shipping.New(shipping.Options{
		Catalog: c.catalog, Clock: c.o.Clock, Interval: c.o.LogEvery, Logger: &c.log,
		Need: c.logNeed(), Patience: c.o.TaskTimeout, Stores: c.chunkStores(), Bare: c.bare, Marked: c.seen,
	})
	if err == nil {
		err = c.shipper.Claim(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("catalog's log: %w", err), c.catalog.Close())
	}
	if err := c.openCoding(); err != nil {
		return errors.Join(err, c.catalog.Close())
	}
	return nil
}

// tidy removes what a dead process was writing in the folder of the state: bodies that it
// spooled, and files that were not whole yet. The catalog is open, so that no other one
// lives.
func (c *Coder) tidy() error {
	for _, pattern := range []string{"body-*", ".new-*"} {
		left, err := filepath.Glob(filepath.Join(c.o.State, pattern))
		if err != nil {
			return err
		}
		for _, name := range left {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// logNeed is how many stores must have a change of the catalog: so many that one of them
// is among any k.
func (c *Coder) logNeed() int {
	if c.code.Layout == object.Shared {
		return 1
	}
	return c.code.N - c.code.K + 1
}

func (c *Coder) chunkStores() []chunks.Store {
	list := make([]chunks.Store, len(c.stores))
	for i, s := range c.stores {
		list[i] = s
	}
	return list
}

// synced waits, if the options say so, until the change that was just made is shipped.
func (c *Coder) synced(ctx context.Context) error {
	if !c.o.CatalogSync {
		return nil
	}
	if err := c.shipper.Sync(ctx); err != nil {
		return fmt.Errorf("the change is made, and not shipped yet: %w", err)
	}
	return nil
}
