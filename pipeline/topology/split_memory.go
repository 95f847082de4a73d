package topology

import (
	"context"
	"fmt"
	"time"

	"penstock/consumers/executor/router"
	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/infra/wholefile"
)

const (
	// keepEvery is how old what is kept of the tables in force may be.
	keepEvery = time.Second
	// restoreWithin bounds what a start waits for a target to take them again.
	restoreWithin = time.Second
)

// splitMemory keeps the tables that a target has in force in a file, so that a
// process that is started while the bus is away has them in force all the same.
type splitMemory struct {
	file   wholefile.JSON[[]keptTable]
	keeper *router.Keeper
	failed func(err error)
}

// keptTable is a table in that file.
type keptTable struct {
	From   string         `json:"from"`
	Epoch  uint64         `json:"epoch"`
	Until  time.Time      `json:"until"`
	Rows   []shares.Row   `json:"rows"`
	Probes []shares.Probe `json:"probes,omitempty"`
}

// restore brings into force what was, and says whether there was anything. A file
// that can't be read holds nothing up: the bus has the tables.
func (m *splitMemory) restore(ctx context.Context) (some bool, err error) {
	all, _, err := m.file.Read()
	if err != nil {
		return false, fmt.Errorf("tables of before: %w", err)
	}
	held := make([]router.Held, len(all))
	for i, k := range all {
		held[i] = router.Held{Table: shares.Table{From: k.From, Epoch: k.Epoch, Rows: k.Rows, Probes: k.Probes}, Until: k.Until}
	}
	ctx, cancel := context.WithTimeout(ctx, restoreWithin)
	defer cancel()
	if err := m.keeper.Restore(ctx, held); err != nil {
		return false, err
	}
	return len(held) > 0, nil
}

// run writes the file whenever something else is in force, and at the end.
func (m *splitMemory) run(ctx context.Context) error {
	t := clock.System().NewTicker(keepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C():
			m.keep()
		case <-ctx.Done():
			m.keep()
			return nil
		}
	}
}

func (m *splitMemory) keep() {
	all := []keptTable{}
	for _, h := range m.keeper.Held() {
		all = append(all, keptTable{From: h.Table.From, Epoch: h.Table.Epoch, Until: h.Until.UTC(), Rows: h.Table.Rows, Probes: h.Table.Probes})
	}
	if err := m.file.Keep(all); err != nil {
		m.failed(err)
	}
}
