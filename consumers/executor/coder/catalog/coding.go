package catalog

import (
	"context"
	"fmt"
	"slices"
)

// Stage says that a version doesn't lie in its intended coding, until Settle says
// otherwise. It returns ErrNoVersion.
func (c *Catalog) Stage(ctx context.Context, version string) error {
	return c.changeRest(ctx, version, func(r *Rest) { r.Staged = true })
}

// Deleting lists the stores that have blobs to delete, or to delete once more, by name.
func (c *Catalog) Deleting() (stores []string, err error) {
	err = c.read(func(v *view) error {
		for _, t := range [...]Table{deletes, repeats} {
			cursor := v.cursor(t)
			key, _ := cursor.First()
			for key != nil {
				store, _, ok := cut(key)
				if !ok {
					return fmt.Errorf("%w: deletion without a store", ErrDamaged)
				}
				stores = append(stores, store)
				key, _ = cursor.Seek(append([]byte(store), 1)) // names hold no 0
			}
		}
		return nil
	})
	slices.Sort(stores)
	return slices.Compact(stores), err
}
