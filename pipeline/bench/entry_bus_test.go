package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/pipeline/demo/load"
)

const (
	// awayTurn and awayRate are a turn and the requests a second offered in it,
	// unless the environment says otherwise.
	awayTurn = 2 * time.Second
	awayRate = 2000.0
	// awaySettle is how long requests are sent and not measured after the bus has
	// gone or come: connections end, spools are emptied.
	awaySettle = 500 * time.Millisecond
	// The environment's words; PENSTOCK_BUS_TURN=1m makes minutes of the turns.
	awayTurnEnv, awayRateEnv = "PENSTOCK_BUS_TURN", "PENSTOCK_BUS_RATE"
)

// BenchmarkEntryWithoutTheBus compares the delays of requests through an entry
// point while its bus is there and while it is away, at one offered rate, by pairs
// of turns of which every other begins without it.
func BenchmarkEntryWithoutTheBus(b *testing.B) {
	length, rate := awayTurn, awayRate
	var err error
	if v := os.Getenv(awayTurnEnv); v != "" {
		if length, err = time.ParseDuration(v); err != nil || length <= 0 {
			b.Fatalf("%s=%s: %v", awayTurnEnv, v, err)
		}
	}
	if v := os.Getenv(awayRateEnv); v != "" {
		if rate, err = strconv.ParseFloat(v, 64); err != nil || rate <= 0 {
			b.Fatalf("%s=%s: %v", awayRateEnv, v, err)
		}
	}
	var with, without []turn
	for range b.N {
		with, without = awayTurns(b, eventPairs, length, rate)
	}
	tail, low, high := ratio(without, with, p99)
	half, _, _ := ratio(without, with, p50)
	b.ReportMetric(tail, "p99-ratio")
	results.add(line{
		name: "p99 through the entry while the bus is away against there", figure: tail, unit: "x", lower: true,
		note: fmt.Sprintf("95 %% interval of the ratio %.3f to %.3f, p50 x %.3f; %d pairs of %v at %.0f requests/s", low, high, half, eventPairs, length, rate),
	})
}

// TestTheBenchmarkWithoutTheBusWorks has one short turn of each.
func TestTheBenchmarkWithoutTheBusWorks(t *testing.T) {
	with, without := awayTurns(t, 1, 200*time.Millisecond, 500)
	if len(with) != 1 || len(without) != 1 || with[0].Requests == 0 || without[0].Requests == 0 {
		t.Errorf("with the bus %+v, without %+v", with, without)
	}
}

// awayTurns takes the bus away and gives it back, so many times. No request may
// fail.
func awayTurns(t testing.TB, pairs int, length time.Duration, rate float64) (with, without []turn) {
	t.Helper()
	there := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Partitions = "127.0.0.1:0", partitions })
	p := startProxy(t, "entry", startService(t).Address, there.URL())
	transport := &http.Transport{MaxIdleConnsPerHost: 1024}
	defer transport.CloseIdleConnections()
	c := &caller{client: &http.Client{Transport: transport, Timeout: time.Minute}, url: "http://" + p.address + "/k"}
	c.turn(t, awaySettle, rate)
	away := func() {
		there.Suspend()
		c.turn(t, awaySettle, rate)
		without = append(without, c.turn(t, length, rate))
		if err := there.Resume(); err != nil {
			t.Fatal(err)
		}
		c.turn(t, 2*awaySettle, rate)
	}
	for i := range pairs {
		if i%2 == 1 {
			away()
		}
		with = append(with, c.turn(t, length, rate))
		if i%2 == 0 {
			away()
		}
	}
	return with, without
}

// caller sends requests at a rate, whether those before are answered or not.
type caller struct {
	client *http.Client
	url    string
}

// turn sends for a while. Delays count from when a request was due.
func (c *caller) turn(t testing.TB, length time.Duration, rate float64) (done turn) {
	t.Helper()
	var took load.Samples[struct{}]
	failed := make(chan error, 1)
	began := time.Now()
	_, err := load.Run(t.Context(), load.Options{
		Clock: clock.System(), Pace: load.Until(load.Even(rate), length),
		Draw: func(s load.Shot) func(context.Context) {
			return func(ctx context.Context) {
				if err := c.get(ctx); err != nil {
					select {
					case failed <- err:
					default: // One is enough.
					}
					return
				}
				took.Add(s.Due, time.Since(s.Due), struct{}{})
			}
		},
	})
	select {
	case err = <-failed:
	default:
	}
	if err != nil {
		t.Fatal(err)
	}
	l := took.Where(func(*load.Sample[struct{}]) bool { return true })
	done.Took, done.P50, done.P99 = time.Since(began), l.Quantile(0.5), l.Quantile(0.99)
	done.Requests = uint64(len(l))
	return done
}

func (c *caller) get(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != answerSize || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d, %d bytes: %w", resp.StatusCode, n, err)
	}
	return nil
}
