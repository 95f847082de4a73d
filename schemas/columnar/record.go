package columnar

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// DataType returns Arrow's type of that name; it is one of those named here.
func DataType(typ string) arrow.DataType {
	switch typ {
	case Int64:
		return arrow.PrimitiveTypes.Int64
	case Int32:
		return arrow.PrimitiveTypes.Int32
	case Uint16:
		return arrow.PrimitiveTypes.Uint16
	case Uint8:
		return arrow.PrimitiveTypes.Uint8
	case Float32:
		return arrow.PrimitiveTypes.Float32
	case Utf8:
		return arrow.BinaryTypes.String
	case Time:
		return timeType
	case Binary16:
		return binaryType
	case DictUtf8:
		return dictType
	case ListUint16:
		return listUint16
	case ListInt64:
		return listInt64
	}
	panic("columnar: no such type: " + typ)
}

var (
	timeType   = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	binaryType = &arrow.FixedSizeBinaryType{ByteWidth: 16}
	dictType   = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	listUint16 = arrow.ListOf(arrow.PrimitiveTypes.Uint16)
	listInt64  = arrow.ListOf(arrow.PrimitiveTypes.Int64)
)

// Schema returns the Arrow schema of fields.
func Schema(fields []Field, metadata map[string]string) *arrow.Schema {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = arrow.Field{Name: f.Name, Type: DataType(f.Type), Nullable: f.Nullable}
	}
	md := arrow.MetadataFrom(metadata)
	return arrow.NewSchema(out, &md)
}

// Record returns a record that is a view of the columns.
func Record(schema *arrow.Schema, columns []Column, rows int) arrow.Record {
	arrays := make([]arrow.Array, len(columns))
	for i := range columns {
		d := columns[i].data()
		arrays[i] = array.MakeFromData(d)
		d.Release()
	}
	rec := array.NewRecord(schema, arrays, int64(rows))
	for _, a := range arrays {
		a.Release()
	}
	return rec
}

// data returns the column as Arrow's array data.
func (c *Column) data() *array.Data {
	valid := buffer(c.Valid)
	if c.Valid == nil {
		valid = nil
	}
	typ := DataType(c.Type)
	switch {
	case c.Dict != nil:
		dict := c.Dict.data()
		defer dict.Release()
		return array.NewDataWithDictionary(typ, c.Len, []*memory.Buffer{valid, buffer(c.Data)}, c.Nulls, 0, dict)
	case c.Type == Utf8:
		return array.NewData(typ, c.Len, []*memory.Buffer{valid, buffer(c.Offsets), buffer(c.Data)}, nil, c.Nulls, 0)
	case c.Child != nil:
		child := c.Child.data()
		defer child.Release()
		return array.NewData(typ, c.Len, []*memory.Buffer{valid, buffer(c.Offsets)}, []arrow.ArrayData{child}, c.Nulls, 0)
	}
	return array.NewData(typ, c.Len, []*memory.Buffer{valid, buffer(c.Data)}, nil, c.Nulls, 0)
}

func buffer(b []byte) *memory.Buffer { return memory.NewBufferBytes(b) }

// FromArray returns the column of an array as it is: a view, except where a
// slice of a bitmap has to be moved. Index types of dictionaries other than
// int32 are converted, since they change through Parquet, and large texts too.
// Types not named here give a column without values.
func FromArray(f arrow.Field, a arrow.Array) (Column, error) {
	d := a.Data()
	c := Column{Field: Field{Name: f.Name, Type: TypeName(a.DataType()), Nullable: f.Nullable}, Len: d.Len()}
	bufs := d.Buffers()
	if len(bufs) > 0 && bufs[0] != nil && a.NullN() > 0 {
		c.Valid, c.Nulls = shift(bufs[0].Bytes(), d.Offset(), d.Len()), a.NullN()
	}
	switch arr := a.(type) {
	case *array.Dictionary:
		if arr.Dictionary().DataType().ID() != arrow.STRING {
			return c, nil
		}
		values, err := FromArray(arrow.Field{Name: f.Name}, arr.Dictionary())
		if err != nil {
			return c, err
		}
		c.Type, c.Dict, c.Data = DictUtf8, &values, indices(arr)
	case *array.String:
		c.Offsets, c.Data = slice(bufs[1], d.Offset()*4, -1), slice(bufs[2], 0, -1)
	case *array.LargeString:
		narrow(arr, &c)
	case *array.List:
		child, err := FromArray(arrow.Field{Name: f.Name}, arr.ListValues())
		if err != nil {
			return c, err
		}
		c.Offsets, c.Child = slice(bufs[1], d.Offset()*4, -1), &child
	default:
		if w := Width(c.Type); w > 0 {
			c.Data = slice(bufs[1], d.Offset()*w, d.Len()*w)
		}
	}
	if !named(c.Type) {
		return c, nil
	}
	return c, c.check()
}

// slice returns n bytes of a buffer from off on, all if n < 0, and what there
// is if there are fewer: check finds out.
func slice(b *memory.Buffer, off, n int) []byte {
	if b == nil || off > b.Len() {
		return nil
	}
	s := b.Bytes()[off:]
	if n >= 0 && n < len(s) {
		s = s[:n]
	}
	return s
}

// shift returns n bits of a bitmap from bit off on as a bitmap of its own.
func shift(b []byte, off, n int) []byte {
	if off&7 == 0 {
		return b[off>>3:]
	}
	out := make([]byte, (n+7)/8)
	for i := range n {
		j := off + i
		out[i>>3] |= (b[j>>3] >> (j & 7) & 1) << (i & 7)
	}
	return out
}

// indices returns the indices of a dictionary array as int32.
func indices(a *array.Dictionary) []byte {
	if d := a.Data(); a.Indices().DataType().ID() == arrow.INT32 {
		return slice(d.Buffers()[1], d.Offset()*4, d.Len()*4)
	}
	out := make([]int32, a.Len())
	for i := range out {
		out[i] = -1
		if a.IsValid(i) {
			out[i] = int32(a.GetValueIndex(i))
		}
	}
	return bytesOf(out)
}

// narrow turns texts with 64-bit offsets into texts.
func narrow(a *array.LargeString, c *Column) {
	var m TextMemory
	values := make([]string, a.Len())
	for i := range values {
		values[i] = a.Value(i)
	}
	t := Texts(c.Name, values, &m)
	c.Type, c.Offsets, c.Data = Utf8, t.Offsets, t.Data
}

// TypeName returns the name of an Arrow type as it is spelt in a Field.
func TypeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.TimestampType:
		if t.TimeZone == "" {
			return fmt.Sprintf("timestamp[%s]", t.Unit)
		}
		return fmt.Sprintf("timestamp[%s, %s]", t.Unit, t.TimeZone)
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)
	case *arrow.DictionaryType:
		return "dictionary<" + TypeName(t.IndexType) + ", " + TypeName(t.ValueType) + ">"
	case *arrow.ListType:
		return "list<" + TypeName(t.Elem()) + ">"
	}
	return strings.ToLower(t.Name())
}
