package recording

import (
	"bytes"
	"path/filepath"
	"strings"

	"penstock/producers/accesslog"
)

var (
	parquetMagic = []byte("PAR1")
	arrowMagic   = []byte("ARROW1")
	// An Arrow stream begins with this and the length of its schema.
	arrowStreamMagic = []byte{0xff, 0xff, 0xff, 0xff}
)

// detect tells the format of a file from its first bytes, and from its name
// where they could be either.
func detect(in *input, o *Options) Format {
	if o.Log.Name != "" {
		return AccessLog
	}
	head, _ := in.in.Peek(inputBuffer) // short at the end of the file
	switch {
	case bytes.HasPrefix(head, parquetMagic):
		return Parquet
	case bytes.HasPrefix(head, arrowMagic), bytes.HasPrefix(head, arrowStreamMagic):
		return Arrow
	}
	head = bytes.TrimPrefix(head, bom)
	first := bytes.TrimLeft(head, " \t\r\n")
	object := len(first) > 0 && first[0] == '{'
	header := isHeaderRow(first)
	// Objects and tables may be a log's, unless they have what rows need.
	if (object || header || strings.HasSuffix(extension(in.name), "sv")) && !hasRequired(first, object) && isLog(in, o) {
		return AccessLog
	}
	switch {
	case object:
		return JSONLines
	case header:
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

// hasRequired reports whether the first object, or header row, names all columns
// that a recording must have.
func hasRequired(first []byte, object bool) bool {
	line, _, _ := bytes.Cut(first, []byte{'\n'})
	if object {
		for _, c := range required {
			if !bytes.Contains(line, []byte(`"`+c.String()+`"`)) {
				return false
			}
		}
		return true
	}
	var seen uint32
	for name := range bytes.SplitSeq(line, []byte{separatorOf(line)}) {
		if c, ok := columnOfHeader(bytes.Trim(name, " \t\r\"")); ok {
			seen |= 1 << c
		}
	}
	return seen&requiredMask == requiredMask
}

// isLog reports whether lines of the file are of a format of access logs.
func isLog(in *input, o *Options) bool {
	log := o.AccessLog
	if len(log.Key) == 0 {
		log.Key = []byte("only to look") // the key is asked for when it is read
	}
	_, choice, err := accesslog.Open(accesslog.ChoiceOptions{Sample: sample(in)}, log)
	return err == nil && choice.Matched > 0
}

// extension of a name without that of its compression, in small letters.
func extension(name string) string {
	name = strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, packed)
	}
	return filepath.Ext(name)
}
