package coding

import "penstock/schemas/control"

// Default is the table that a coder has before anything was measured: by the models of
// the configuration. It is in force while the bus holds none, and after a ttl is over.
// False for a coder that the configuration doesn't name; the error wraps ErrConfig.
func Default(c Config, coder string) (control.CodingTable, bool, error) {
	t, err := New(c)
	if err != nil {
		return control.CodingTable{}, false, err
	}
	i, ok := t.index[coder]
	if !ok {
		return control.CodingTable{}, false, nil
	}
	table, _ := t.plan(i)
	return *table, true, nil
}
