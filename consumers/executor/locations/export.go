package locations

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"penstock/schemas/control"
)

// Format is what an export is written as.
type Format int

// The formats. An import tells them apart by itself.
const (
	CSV Format = iota
	Parquet
)

// Export writes all entries, ascending by owner (bytes), and returns how many.
// They are held in memory meanwhile.
func Export(ctx context.Context, w io.Writer, t Table, f Format) (int, error) {
	type entry struct {
		owner string
		l     control.Location
	}
	var all []entry
	err := t.List(ctx, func(owner string, l control.Location) error {
		all = append(all, entry{owner, l})
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.owner, b.owner) })
	var out interface {
		write(owner string, l control.Location) error
		close() error
	}
	if f == Parquet {
		out, err = newParquetWriter(w)
	} else {
		out, err = newCSVWriter(w)
	}
	for i := 0; err == nil && i < len(all); i++ {
		err = out.write(all[i].owner, all[i].l)
	}
	if err == nil {
		err = out.close()
	}
	if err != nil {
		return 0, fmt.Errorf("export locations: %w", err)
	}
	return len(all), nil
}
