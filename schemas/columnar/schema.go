package columnar

import "fmt"

// Limits on what a schema may hold: they bound the work that a few hostile
// bytes can cause, since tables of a flatbuffer may be shared.
const (
	maxFields = 512
	maxDepth  = 8
	maxText   = 4 << 10
)

// node is a field of a schema with what is needed to find its buffers.
type node struct {
	Field
	kind     byte // the type union's tag, of the values if dict is set
	dict     bool
	id       int64
	children []node
}

// Tags of Arrow's type union that have buffers of their own layout here.
const (
	tagNull        = 1
	tagInt         = 2
	tagFloat       = 3
	tagBinary      = 4
	tagUtf8        = 5
	tagBool        = 6
	tagDecimal     = 7
	tagDate        = 8
	tagTime        = 9
	tagTimestamp   = 10
	tagInterval    = 11
	tagList        = 12
	tagStruct      = 13
	tagFixedBinary = 15
	tagFixedList   = 16
	tagMap         = 17
	tagDuration    = 18
	tagLargeBinary = 19
	tagLargeUtf8   = 20
	tagLargeList   = 21
)

// parseSchema reads a Schema table.
func parseSchema(t table) (fields []node, metadata map[string]string, err error) {
	if t.first() != 0 {
		return nil, nil, fmt.Errorf("big-endian numbers: %w", ErrCorrupt)
	}
	left := maxFields
	first, n := t.vector(1, 4)
	if n > left {
		return nil, nil, fmt.Errorf("%d columns, at most %d: %w", n, maxFields, ErrCorrupt)
	}
	for i := range n {
		f, err := parseField(t.tableAt(first, i), maxDepth, &left)
		if err != nil {
			return nil, nil, err
		}
		fields = append(fields, f)
	}
	first, n = t.vector(2, 4)
	if n > 0 {
		metadata = make(map[string]string, min(n, maxFields))
	}
	for i := range min(n, maxFields) {
		kv := t.tableAt(first, i)
		_, k := kv.vector(0, 1)
		_, v := kv.vector(1, 1)
		if k > maxText || v > maxText {
			continue // Nothing that is read here is that long.
		}
		metadata[kv.text(0)] = kv.text(1)
	}
	return fields, metadata, nil
}

func parseField(t table, depth int, left *int) (node, error) {
	if *left--; *left < 0 || depth == 0 {
		return node{}, fmt.Errorf("more than %d columns or nested deeper than %d: %w", maxFields, maxDepth, ErrCorrupt)
	}
	if _, n := t.vector(0, 1); n > maxText {
		return node{}, fmt.Errorf("a column's name has %d bytes: %w", n, ErrCorrupt)
	}
	f := node{Field: Field{Name: t.text(0), Nullable: t.byte(1) != 0}, kind: t.byte(2)}
	typ, _ := t.table(3)
	first, n := t.vector(5, 4)
	for i := range n {
		c, err := parseField(t.tableAt(first, i), depth-1, left)
		if err != nil {
			return node{}, err
		}
		f.children = append(f.children, c)
	}
	f.Type = typeName(f.kind, typ, f.children)
	if d, ok := t.table(4); ok {
		f.dict, f.id = true, d.int64(0)
		index := Int32
		if it, ok := d.table(1); ok {
			index = typeName(tagInt, it, nil)
		}
		f.Type = "dictionary<" + index + ", " + f.Type + ">"
	}
	return f, nil
}

func typeName(tag byte, t table, children []node) string {
	if t.b == nil {
		return "none"
	}
	switch tag {
	case tagInt:
		sign := "uint"
		if t.byte(1) != 0 {
			sign = "int"
		}
		return fmt.Sprint(sign, t.int32(0, 0))
	case tagFloat:
		return [4]string{"float16", "float32", "float64", "float"}[min(uint16(t.first()), 3)]
	case tagUtf8:
		return Utf8
	case tagTimestamp:
		unit := [5]string{"s", "ms", "us", "ns", "?"}[min(uint16(t.first()), 4)]
		if _, n := t.vector(1, 1); n > 0 && n <= maxText {
			unit += ", " + t.text(1)
		}
		return "timestamp[" + unit + "]"
	case tagFixedBinary:
		return fmt.Sprintf("fixed_size_binary[%d]", t.int32(0, 0))
	case tagList:
		if len(children) == 1 {
			return "list<" + children[0].Type + ">"
		}
	}
	if int(tag) < len(otherNames) && otherNames[tag] != "" {
		return otherNames[tag]
	}
	return fmt.Sprintf("type %d", tag)
}

var otherNames = [...]string{
	tagNull: "null", tagBinary: "binary", tagBool: "bool", tagDecimal: "decimal", tagDate: "date",
	tagTime: "time", tagInterval: "interval", tagList: "list", tagStruct: "struct", 14: "union",
	tagFixedList: "fixed_size_list", tagMap: "map", tagDuration: "duration",
	tagLargeBinary: "large_binary", tagLargeUtf8: "large_utf8", tagLargeList: "large_list",
}

// buffers returns how many buffers a field of this kind has itself, −1 for a
// kind that cannot be stepped over.
func (f *node) buffers() int {
	if f.dict {
		return 2
	}
	switch f.kind {
	case tagNull:
		return 0
	case tagInt, tagFloat, tagBool, tagDecimal, tagDate, tagTime, tagTimestamp, tagInterval,
		tagFixedBinary, tagDuration, tagList, tagLargeList, tagMap:
		return 2
	case tagBinary, tagUtf8, tagLargeBinary, tagLargeUtf8:
		return 3
	case tagStruct, tagFixedList:
		return 1
	}
	return -1
}
