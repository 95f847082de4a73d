package coding

import "penstock/schemas/control"

// Default is the table that a store has before anything was measured: by the models of
// the configuration. A coder has it in force while the bus holds none for it, and after
// a ttl is over. False for a store that the configuration doesn't name.
func Default(c Config, store string) (control.CodingTable, bool, error) {
	t, err := New(c)
	if err != nil {
		return control.CodingTable{}, false, err
	}
	i, ok := t.index[store]
	if !ok {
		return control.CodingTable{}, false, nil
	}
	table, _ := t.plan(i)
	return *table, true, nil
}
