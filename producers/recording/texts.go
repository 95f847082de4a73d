package recording

import (
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"penstock/schemas/event"
)

// textGetter returns a function that gives the value of a row as text, "" for
// null.
func textGetter(a arrow.Array) (func(i int) string, error) {
	var get func(i int) string
	switch v := a.(type) {
	case *array.String:
		get = v.Value
	case *array.LargeString:
		get = v.Value
	case *array.Binary:
		get = v.ValueString
	case *array.LargeBinary:
		get = v.ValueString
	case *array.Float64:
		get = func(i int) string { return strconv.FormatFloat(v.Value(i), 'g', -1, 64) }
	case *array.Float32:
		get = func(i int) string { return strconv.FormatFloat(float64(v.Value(i)), 'g', -1, 32) }
	case *array.Int64:
		get = func(i int) string { return strconv.FormatInt(v.Value(i), 10) }
	case *array.Int32:
		get = func(i int) string { return strconv.FormatInt(int64(v.Value(i)), 10) }
	case *array.Int16:
		get = func(i int) string { return strconv.FormatInt(int64(v.Value(i)), 10) }
	case *array.Int8:
		get = func(i int) string { return strconv.FormatInt(int64(v.Value(i)), 10) }
	case *array.Uint64:
		get = func(i int) string { return strconv.FormatUint(v.Value(i), 10) }
	case *array.Uint32:
		get = func(i int) string { return strconv.FormatUint(uint64(v.Value(i)), 10) }
	case *array.Uint16:
		get = func(i int) string { return strconv.FormatUint(uint64(v.Value(i)), 10) }
	case *array.Uint8:
		get = func(i int) string { return strconv.FormatUint(uint64(v.Value(i)), 10) }
	case *array.Null:
		get = func(int) string { return "" }
	case *array.Dictionary:
		inner, err := textGetter(v.Dictionary())
		if err != nil {
			return nil, err
		}
		get = func(i int) string { return inner(v.GetValueIndex(i)) }
	default:
		return nil, errColumnType
	}
	return func(i int) string {
		if a.IsNull(i) {
			return ""
		}
		return get(i)
	}, nil
}

// fillText takes a text column in. Strings are interned, so that a row kept
// for long keeps no file's memory alive.
func (b *batch) fillText(c column, a arrow.Array, t *interner) error {
	dst := &b.texts[c-firstText]
	if d, ok := a.(*array.Dictionary); ok {
		return dst.fillDictionary(d, t)
	}
	if s, ok := a.(*array.String); ok && c == colID {
		dst.fillOnce(s)
		return nil
	}
	get, err := textGetter(a)
	if err != nil {
		return err
	}
	for i := range dst.codes {
		s := get(i)
		if s == "" {
			dst.codes[i] = event.NullCode
			continue
		}
		// Runs of one value are the rule for sites and components.
		if n := len(dst.values); n > 0 && dst.values[n-1] == s {
			dst.codes[i] = int32(n - 1)
			continue
		}
		dst.codes[i] = int32(len(dst.values))
		dst.values = append(dst.values, t.string(s))
	}
	return nil
}

// fillOnce takes in texts that hardly repeat, such as ids: one copy for all,
// instead of one each.
func (t *textColumn) fillOnce(a *array.String) {
	if len(t.codes) == 0 {
		return
	}
	base := a.ValueOffset(0)
	all := string(a.ValueBytes())
	for i := range t.codes {
		from, to := a.ValueOffset(i)-base, a.ValueOffset(i+1)-base
		if a.IsNull(i) || from == to {
			t.codes[i] = event.NullCode
			continue
		}
		t.codes[i] = int32(len(t.values))
		t.values = append(t.values, all[from:to])
	}
}

// unseen marks a dictionary value that no row has named yet.
const unseen int32 = -2

// fillDictionary takes in codes as they are. Only the values that rows name
// are looked at: a file's dictionary may be far greater than a batch.
func (t *textColumn) fillDictionary(d *array.Dictionary, strings *interner) error {
	get, err := textGetter(d.Dictionary())
	if err != nil {
		return err
	}
	index, ok := d.Indices().(*array.Int32)
	if !ok {
		for i := range t.codes {
			t.codes[i] = event.NullCode
			if d.IsValid(i) {
				t.add(i, get(d.GetValueIndex(i)), strings)
			}
		}
		return nil
	}
	codes := make([]int32, d.Dictionary().Len())
	fill(codes, unseen)
	nulls := d.NullN() > 0
	for i, v := range index.Int32Values() {
		if nulls && d.IsNull(i) {
			t.codes[i] = event.NullCode
			continue
		}
		if codes[v] == unseen {
			t.add(i, get(int(v)), strings)
			codes[v] = t.codes[i]
		}
		t.codes[i] = codes[v]
	}
	return nil
}

func (t *textColumn) add(row int, s string, strings *interner) {
	if s == "" {
		t.codes[row] = event.NullCode
		return
	}
	t.codes[row] = int32(len(t.values))
	t.values = append(t.values, strings.string(s))
}

// fillOp reads the operations; they are as good as always the same two.
func (b *batch) fillOp(a arrow.Array) error {
	dst := b.ints[colOp]
	set := func(i int, s string) {
		op, ok := parseOp([]byte(s))
		dst[i] = int64(op)
		if !ok && a.IsValid(i) {
			b.wrong(i, colOp, s)
		}
	}
	if d, ok := a.(*array.Dictionary); ok {
		if index, ok := d.Indices().(*array.Int32); ok {
			if values, ok := d.Dictionary().(*array.String); ok {
				return b.fillOpCodes(index.Int32Values(), values, a)
			}
		}
	}
	get, err := textGetter(a)
	if err != nil {
		return err
	}
	for i := range dst {
		set(i, get(i))
	}
	return nil
}

func (b *batch) fillOpCodes(index []int32, values *array.String, a arrow.Array) error {
	ops := make([]int64, values.Len())
	for i := range ops {
		op, ok := parseOp([]byte(values.Value(i)))
		if ops[i] = int64(op); !ok {
			ops[i] = -1
		}
	}
	nulls := a.NullN() > 0
	dst := b.ints[colOp]
	for i, v := range index {
		dst[i] = 0
		if nulls && a.IsNull(i) {
			continue
		}
		if dst[i] = ops[v]; dst[i] < 0 {
			dst[i] = 0
			b.wrong(i, colOp, values.Value(int(v)))
		}
	}
	return nil
}
