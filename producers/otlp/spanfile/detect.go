package spanfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// detect tells the format by the first bytes.
func detect(name string, in *bufio.Reader) (Format, error) {
	head, err := in.Peek(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		return Auto, fmt.Errorf("%s: %w", name, broken(err))
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(text) == 0:
		return OTLP, nil // an empty file has nothing, whatever it is
	case text[0] == '{' || text[0] == '[':
		if f := detectJSON(text); f != Auto {
			return f, nil
		}
	case isHeader(text):
		return CSV, nil
	case head[0] == 0x0a || head[0] == 0 || len(head) > 4 && head[4] == 0x0a:
		return Proto, nil // a length, or the tag of the first field
	}
	return Auto, fmt.Errorf("%s begins with %.40q, expected one of %v: %w", name, text, Formats(), ErrFormat)
}

// detectJSON goes by which key comes first: what is within does not count.
func detectJSON(text []byte) Format {
	best, at := Auto, len(text)
	for _, k := range [...]struct {
		key    string
		format Format
	}{
		{`"resourceSpans"`, OTLP},
		{`"traceID"`, Jaeger},
		{`"spanID"`, Jaeger},
		{`"processes"`, Jaeger},
		{`"traceId"`, Zipkin},
		{`"localEndpoint"`, Zipkin},
	} {
		if i := bytes.Index(text, []byte(k.key)); i >= 0 && i < at {
			best, at = k.format, i
		}
	}
	if best == Auto && len(bytes.Trim(text, "[]{} \t\r\n")) == 0 {
		return Zipkin // an empty list
	}
	return best
}

// isHeader reports whether the first line names the columns of span CSV.
func isHeader(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.ToLower(line)
	return bytes.Contains(line, []byte("traceid")) && bytes.Contains(line, []byte("spanid")) && bytes.IndexByte(line, ',') > 0
}
