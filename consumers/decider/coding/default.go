package coding

import "penstock/schemas/control"

// believed is a coder's table before anything was measured.
func (t *Policy) believed(i int) *control.CodingTable {
	fresh := *t
	fresh.state = newState(&t.config)
	table, _ := fresh.plan(i)
	return table
}

// Default is the table of a coder before anything was measured: by the models of the
// configuration. The coder has it in force while the bus holds none for it, and after a
// ttl is over. False for a coder that the configuration doesn't name. The error wraps
// ErrConfig.
func Default(c Config, coder string) (table control.CodingTable, known bool, err error) {
	t, err := New(c)
	if err != nil {
		return table, false, err
	}
	i, known := t.index[coder]
	if known {
		table = *t.believed(i)
	}
	return table, known, nil
}
