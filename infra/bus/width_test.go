package bus_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// TestWindowsAreThoseOfTheBus: everyone takes the width from the bus, and whoever
// is configured otherwise is told by a difference. A bus of before says nothing
// and has windows of an hour.
func TestWindowsAreThoseOfTheBus(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Window, o.Listen = 2, 10*time.Minute, "127.0.0.1:0" })
	check := func(width time.Duration, has string, want string) {
		t.Helper()
		other, err := bus.Open(testContext(t), bus.Options{URL: b.URL(), Window: width, Logger: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		err = other.Init(testContext(t))
		var diff *bus.DiffError
		switch {
		case want == "" && err != nil:
			t.Errorf("configured with %s: %v", width, err)
		case want != "" && (!errors.As(err, &diff) || len(diff.Diffs) != 1 || diff.Diffs[0].String() != want):
			t.Errorf("configured with %s: %v, expected %s", width, err, want)
		}
		c, err := other.Client(testContext(t), "x")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Widths().Of(window.Traffic).String(); got != has || c.Widths().Of(window.Delay) != 10*time.Second {
			t.Errorf("windows of %s, expected %s", got, has)
		}
	}
	check(0, "10m0s", "")
	check(10*time.Minute, "10m0s", "")
	check(time.Hour, "10m0s", "stream WINDOWS: metadata penstock.window: have 10m0s, want 1h0m0s")

	c := bustest.Client(t, b)
	set := func(said string) {
		t.Helper()
		s, err := c.JS.Stream(testContext(t), subject.WindowsStream)
		if err != nil {
			t.Fatal(err)
		}
		conf := s.CachedInfo().Config
		delete(conf.Metadata, "penstock.window")
		if said != "" {
			conf.Metadata["penstock.window"] = said
		}
		if _, err := c.JS.UpdateStream(testContext(t), conf); err != nil {
			t.Fatal(err)
		}
	}
	set("")
	check(0, "1h0m0s", "")
	check(time.Hour, "1h0m0s", "")
	check(10*time.Minute, "1h0m0s", "stream WINDOWS: metadata penstock.window: have 1h0m0s, want 10m0s")

	set("7m0s")
	if _, err := b.Client(testContext(t), "x"); !errors.Is(err, bus.ErrNotReady) || !strings.Contains(err.Error(), "7m0s") {
		t.Errorf("windows that do not divide a day: %v", err)
	}
	for _, d := range []time.Duration{time.Millisecond, 7 * time.Minute, 48 * time.Hour, -time.Second} {
		if _, err := bus.Open(testContext(t), bus.Options{URL: b.URL(), Window: d, Logger: zerolog.Nop()}); !errors.Is(err, window.ErrWidth) {
			t.Errorf("opened for windows of %s: %v", d, err)
		}
	}
}
