package recording

import (
	"bytes"
	"path/filepath"
	"strings"
)

var (
	parquetMagic = []byte("PAR1")
	arrowMagic   = []byte("ARROW1")
	// An Arrow stream begins with this and the length of its schema.
	arrowStreamMagic = []byte{0xff, 0xff, 0xff, 0xff}
)

// detect tells the format of a file from its first bytes, and from its name
// where they could be either.
func detect(in *input) Format {
	head, _ := in.in.Peek(inputBuffer) // short at the end of the file
	switch {
	case bytes.HasPrefix(head, parquetMagic):
		return Parquet
	case bytes.HasPrefix(head, arrowMagic), bytes.HasPrefix(head, arrowStreamMagic):
		return Arrow
	}
	head = bytes.TrimPrefix(head, bom)
	first := bytes.TrimLeft(head, " \t\r\n")
	if len(first) > 0 && first[0] == '{' {
		return JSONLines
	}
	if isHeaderRow(first) {
		return CSV
	}
	switch extension(in.name) {
	case ".csv", ".tsv", ".tab":
		return CSV
	case ".jsonl", ".ndjson", ".json":
		return JSONLines
	case ".parquet":
		return Parquet
	case ".arrow", ".arrows", ".feather", ".ipc":
		return Arrow
	}
	return AccessLog
}

// extension of a name without that of its compression, in small letters.
func extension(name string) string {
	name = strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, packed)
	}
	return filepath.Ext(name)
}
