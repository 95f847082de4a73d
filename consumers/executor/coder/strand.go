package coder

import (
	"context"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
)

// strands drops, until ctx ends, what is to be deleted from stores that are not configured
// any more: nobody can be asked to. Its bytes may remain there. If the store comes back, a
// scrub that looks for orphans finds them.
func (c *Coder) strands(ctx context.Context) {
	for {
		stores, err := c.catalog.Deleting()
		for _, name := range stores {
			if c.named[name] == nil && err == nil {
				err = c.strand(ctx, name)
			}
		}
		if err != nil && ctx.Err() == nil {
			c.retried("stranded", "", err)
		}
		if !c.pause(ctx, nil, c.o.Retry) {
			return
		}
	}
}

// strand drops the deletions from one store, but for those of blobs that are being read.
func (c *Coder) strand(ctx context.Context, store string) error {
	dropped := 0
	for after := ""; ; {
		list, next, err := c.catalog.Deletes(store, after, page)
		if err != nil {
			return err
		}
		if err := c.catalog.Deleted(ctx, placesIn(list)...); err != nil {
			return err
		}
		c.count(EventStranded, store, int64(len(list)))
		dropped += len(list)
		if after = next; after == "" {
			break
		}
	}
	if err := c.dropRepeats(ctx, store); err != nil {
		return err
	}
	if dropped > 0 {
		c.log.Warn().Str("store", store).Int("blobs", dropped).
			Msg("store is not configured any more: blobs that were to be deleted may remain there")
	}
	return nil
}

func placesIn(list []catalog.Deletion) []object.Place {
	places := make([]object.Place, len(list))
	for i, d := range list {
		places[i] = d.Place
	}
	return places
}
