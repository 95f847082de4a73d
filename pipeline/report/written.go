package report

import (
	"context"
	"errors"
	"fmt"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/schemas/window"
)

// WriteMatrices merges all windows that WINDOWS holds and writes them into
// dir/matrices. Windows that are still open are left out: an end mark closes
// all of a replay's. Late rows stand in a matrix of their own. Those who watch are
// shown every window on the way.
func WriteMatrices(ctx context.Context, client *bus.Client, dir string, watch ...func(*panes.Window)) error {
	m, err := NewMatrices(dir)
	if err != nil {
		return err
	}
	for _, g := range window.Groups {
		if err := m.group(ctx, client, g, watch); err != nil {
			return errors.Join(fmt.Errorf("matrices of %s: %w", g, err), m.Abort())
		}
	}
	return m.Close()
}

// group writes the rollups of a group. Rollups of different widths close on
// windows of the group's widest, whose rows are in order of their own starts.
func (m *Matrices) group(ctx context.Context, client *bus.Client, group string, watch []func(*panes.Window)) error {
	var late []*window.Table
	_, err := panes.Each(ctx, client, panes.Options{Group: group}, panes.Visitor{
		Flush: func(f *panes.Flush) error {
			late = append(late, f.Late...)
			return nil
		},
		Window: func(w *panes.Window) error {
			for _, see := range watch {
				see(w)
			}
			for _, r := range window.Of(group) {
				t := w.Tables[r.Name]
				if r == window.Late || t == nil {
					continue
				}
				if err := m.Add(t, len(w.Incomplete) > 0); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err != nil || len(late) == 0 {
		return err
	}
	return m.Add(window.Merge(window.Late, late...), false)
}
