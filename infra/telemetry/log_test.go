package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/telemetry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 5_000_000, time.FixedZone("", 3600))

func TestOffATerminalTheLogIsJSON(t *testing.T) {
	var b bytes.Buffer
	log, err := telemetry.NewLogger(&b, telemetry.LogOptions{Clock: clock.NewManual(noon)})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Msg("left out")
	log.Info().Str("part", "decider").Msg("window decided")
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v", b.String(), err)
	}
	for k, v := range map[string]string{"level": "info", "part": "decider", "message": "window decided", "time": "2026-03-01T11:00:00.005Z"} {
		if got[k] != v {
			t.Errorf("%s: got %v, expected %s", k, got[k], v)
		}
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := telemetry.NewLogger(f, telemetry.LogOptions{Level: "DEBUG"})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Msg("hello")
	b, err := os.ReadFile(f.Name())
	if err != nil || !json.Valid(b) {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestTextIsForPeople(t *testing.T) {
	var b bytes.Buffer
	log, err := telemetry.NewLogger(&b, telemetry.LogOptions{Clock: clock.NewManual(noon), Format: "text"})
	if err != nil {
		t.Fatal(err)
	}
	log.Warn().Int("rows", 5).Msg("late")
	if got := b.String(); !strings.Contains(got, "late rows=5") || strings.Contains(got, "\x1b") || strings.Contains(got, "{") {
		t.Errorf("got %q", got)
	}
}

func TestUnusableLogOptions(t *testing.T) {
	for _, c := range []struct {
		o        telemetry.LogOptions
		expected string
	}{
		{telemetry.LogOptions{Level: "loud"}, `log level "loud", expected trace, debug, info, warn or error: unusable telemetry options`},
		{telemetry.LogOptions{Level: "disabled"}, `log level "disabled", expected trace, debug, info, warn or error: unusable telemetry options`},
		{telemetry.LogOptions{Format: "xml"}, `log format "xml", expected auto, text or json: unusable telemetry options`},
	} {
		if _, err := telemetry.NewLogger(&bytes.Buffer{}, c.o); err == nil || err.Error() != c.expected || !errors.Is(err, telemetry.ErrOptions) {
			t.Errorf("got %v\nexpected %s", err, c.expected)
		}
	}
}
