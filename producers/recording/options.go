package recording

import (
	"fmt"
	"slices"
	"strings"

	"penstock/producers/accesslog"
)

// Format is how a recording is written down.
type Format string

// The formats. Auto tells the format from each file's content, and from its
// name where the content could be either.
const (
	Auto      Format = ""
	Parquet   Format = "parquet"
	Arrow     Format = "arrow" // IPC file or stream
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
	AccessLog Format = "accesslog"
)

var formats = []Format{Parquet, Arrow, CSV, JSONLines, AccessLog}

// ParseFormat returns the format of that name; "" is Auto. The error wraps
// ErrOption and lists the names.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); f == Auto || slices.Contains(formats, f) {
		return f, nil
	}
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return Auto, fmt.Errorf("format %.40q, expected %s: %w", name, strings.Join(names, ", "), ErrOption)
}

// Options of a Reader.
type Options struct {
	// AccessLog says how access logs are read. Its key is needed only if one of
	// the files is an access log.
	AccessLog accesslog.Options
	// Log says which format the access logs have; its Sample is not looked at. A
	// name makes all files access logs. Defaults to telling it from each file.
	Log accesslog.ChoiceOptions
	// Bad is told of each line that cannot be used, in the order of reading, by
	// the goroutine that calls Next. Nil: they are only counted.
	Bad func(BadLine)
	// Format of all files. Defaults to Auto.
	Format Format
	// Note is told once a file what else is worth knowing, such as columns that
	// are left out, or that nothing is in it. Nil: nobody is.
	Note func(file, text string)
}

// Stats counts what a Reader has read so far. Received lines are Rows + Bad.
type Stats struct {
	Rows  int64 // rows that Next returned, or will return next of each file
	Bad   int64 // lines reported as bad
	Blank int64 // lines without content
}

// Position is where the row that Next returned last stands.
type Position struct {
	File  string
	Index int // of the file among those that were opened
	Line  int64
}
