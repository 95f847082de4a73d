package telemetry

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// LogOptions say how the log looks.
type LogOptions struct {
	// Clock stamps the lines. Defaults to the machine's.
	Clock clock.Clock
	// Format is text, json, or auto: text if the writer is a terminal, else
	// json. Defaults to auto.
	Format string
	// Level is the least level that is written: trace, debug, info, warn, error.
	// Defaults to info.
	Level string
}

// timeFormat has milliseconds, and all digits of them, so that lines align.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// NewLogger returns a log that writes to w. The error wraps ErrOptions.
func NewLogger(w io.Writer, o LogOptions) (zerolog.Logger, error) {
	level := zerolog.InfoLevel
	if o.Level != "" {
		var err error
		if level, err = zerolog.ParseLevel(strings.ToLower(o.Level)); err != nil || level < zerolog.TraceLevel || level > zerolog.ErrorLevel {
			return zerolog.Nop(), fmt.Errorf("log level %.40q, expected trace, debug, info, warn or error: %w", o.Level, ErrOptions)
		}
	}
	c := o.Clock
	if c == nil {
		c = clock.System()
	}
	text := isTerminal(w)
	switch o.Format {
	case "", "auto":
	case "text":
		text = true
	case "json":
		text = false
	default:
		return zerolog.Nop(), fmt.Errorf("log format %.40q, expected auto, text or json: %w", o.Format, ErrOptions)
	}
	if text {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05.000", NoColor: !isTerminal(w) || os.Getenv("NO_COLOR") != ""}
	}
	stamp := zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		e.Str(zerolog.TimestampFieldName, c.Now().UTC().Format(timeFormat))
	})
	return zerolog.New(w).Level(level).Hook(stamp), nil
}

// isTerminal reports whether w is a terminal, on which people read.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	s, err := f.Stat()
	return err == nil && s.Mode()&os.ModeCharDevice != 0
}
