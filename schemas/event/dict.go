package event

// Dict is a dictionary column: a code a row and the distinct values. Code −1 is
// absent. The zero value is an empty column, ready to use.
type Dict struct {
	Codes  []int32
	Values []string

	index map[string]int32
	last  string
	code  int32
}

// NullCode is the code of an absent value.
const NullCode int32 = -1

// Append adds one row; an empty s is absent. It allocates only for a value
// that the column has not seen since the last Reset. The string is kept.
func (d *Dict) Append(s string) {
	d.Codes = append(d.Codes, d.Intern(s))
}

// Intern returns the code of s, adding it to Values if it is new.
func (d *Dict) Intern(s string) int32 {
	if s == "" {
		return NullCode
	}
	// Runs of one value are the rule for components and sites.
	if s == d.last && len(d.Values) > 0 {
		return d.code
	}
	if d.index == nil {
		d.index = make(map[string]int32)
		for i, v := range d.Values {
			d.index[v] = int32(i)
		}
	}
	c, ok := d.index[s]
	if !ok {
		c = int32(len(d.Values))
		d.Values = append(d.Values, s)
		d.index[s] = c
	}
	d.last, d.code = s, c
	return c
}

// At returns the value of row i, "" if absent.
func (d *Dict) At(i int) string {
	if c := d.Codes[i]; c >= 0 {
		return d.Values[c]
	}
	return ""
}

// Len returns the number of rows.
func (d *Dict) Len() int { return len(d.Codes) }

// Reset empties the column and keeps its memory.
func (d *Dict) Reset() {
	d.Codes = d.Codes[:0]
	clear(d.Values)
	d.Values = d.Values[:0]
	clear(d.index)
	d.last, d.code = "", NullCode
}

// Set replaces the column's content; it is for decoders. The slices are kept,
// and Values must be distinct and not empty.
func (d *Dict) Set(codes []int32, values []string) {
	d.Codes, d.Values, d.index, d.last = codes, values, nil, ""
}
