package recording

import (
	"fmt"
	"slices"
	"strings"

	"penstock/infra/errorkind"
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
	return Auto, errorkind.Errorf(ErrOption, "format %.40q, expected %s", name, strings.Join(names, ", "))
}

// Named is what a user may call the format of recordings: one of ParseFormat's
// names, or that of a format of access logs, which makes all files such logs
// (accesslog.ChoiceOptions). digest is of what their rows follow from, "" for
// Auto. The error wraps ErrOption.
func Named(name string) (f Format, log accesslog.ChoiceOptions, digest string, err error) {
	f, err = ParseFormat(name)
	if err == nil {
		return f, log, string(f), nil
	}
	known, logErr := accesslog.Find(name)
	if logErr != nil {
		return Auto, log, "", fmt.Errorf("%w; as one of an access log: %w", err, logErr)
	}
	return AccessLog, accesslog.ChoiceOptions{Name: name}, known.Name() + " " + known.Digest(), nil
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
