package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"penstock/infra/clock"
	"penstock/infra/telemetry"
	"penstock/schemas/window"
)

// shown returns what a scrape shows of the metrics whose names begin so.
func shown(r *prometheus.Registry, name string) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var b strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestLagGrowsWhileNothingIsProcessed(t *testing.T) {
	c := clock.NewManual(noon)
	r := prometheus.NewRegistry()
	m, err := telemetry.New(r, c)
	if err != nil {
		t.Fatal(err)
	}
	m.Lag.Newest(noon.Add(-2*time.Second).UnixMicro(), "owners", "3")
	m.Lag.Newest(noon.Add(-5*time.Second).UnixMicro(), "owners", "3") // Older: counts for nothing.
	m.Lag.Newest(noon.Add(-time.Minute).UnixMicro(), "fast", "0")
	c.Advance(500 * time.Millisecond)
	check := func(expected string) {
		t.Helper()
		head := "# HELP penstock_lag_seconds Age of the newest processed event.\n# TYPE penstock_lag_seconds gauge\n"
		if got := shown(r, "penstock_lag_seconds"); got != head+expected {
			t.Errorf("got\n%s\nexpected\n%s", got, head+expected)
		}
	}
	check(`penstock_lag_seconds{group="fast",partition="0"} 60.5
penstock_lag_seconds{group="owners",partition="3"} 2.5
`)
	m.Lag.Forget("fast", "0")
	c.Advance(time.Second)
	check(`penstock_lag_seconds{group="owners",partition="3"} 3.5
`)
}

func TestTheLoopsMetricsAreShown(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := telemetry.New(r, clock.NewManual(noon))
	if err != nil {
		t.Fatal(err)
	}
	m.AddAccount("owners", 0, window.Account{Received: 10, Counted: 8, LostBatches: 2})
	m.Rows.Inc("owners", "0", "counted")
	m.AddAccount("owners", 0, window.Account{Late: 1})
	m.Outcomes.Inc("placement", "done")
	m.SpoolBytes.Set(17, "web-1")
	m.DecisionTime.Observe(20*time.Millisecond, "placement")
	expected := `# HELP penstock_decision_seconds Time to decide a window, without publishing.
# TYPE penstock_decision_seconds histogram
penstock_decision_seconds_bucket{kind="placement",le="0.0001"} 0
penstock_decision_seconds_bucket{kind="placement",le="0.0005"} 0
penstock_decision_seconds_bucket{kind="placement",le="0.001"} 0
penstock_decision_seconds_bucket{kind="placement",le="0.005"} 0
penstock_decision_seconds_bucket{kind="placement",le="0.01"} 0
penstock_decision_seconds_bucket{kind="placement",le="0.05"} 1
penstock_decision_seconds_bucket{kind="placement",le="0.1"} 1
penstock_decision_seconds_bucket{kind="placement",le="0.5"} 1
penstock_decision_seconds_bucket{kind="placement",le="1"} 1
penstock_decision_seconds_bucket{kind="placement",le="5"} 1
penstock_decision_seconds_bucket{kind="placement",le="10"} 1
penstock_decision_seconds_bucket{kind="placement",le="60"} 1
penstock_decision_seconds_bucket{kind="placement",le="+Inf"} 1
penstock_decision_seconds_sum{kind="placement"} 0.02
penstock_decision_seconds_count{kind="placement"} 1
# HELP penstock_lost_batches_total Batches that were given up.
# TYPE penstock_lost_batches_total counter
penstock_lost_batches_total{group="owners",partition="0"} 2
# HELP penstock_outcomes_total How commands and moves ended.
# TYPE penstock_outcomes_total counter
penstock_outcomes_total{kind="placement",status="done"} 1
# HELP penstock_rows_total Rows by account; received is the sum of the others.
# TYPE penstock_rows_total counter
penstock_rows_total{account="counted",group="owners",partition="0"} 9
penstock_rows_total{account="late",group="owners",partition="0"} 1
penstock_rows_total{account="received",group="owners",partition="0"} 10
# HELP penstock_spool_bytes Bytes in the spool that await an acknowledgement.
# TYPE penstock_spool_bytes gauge
penstock_spool_bytes{entry="web-1"} 17
`
	if got := shown(r, ""); got != expected {
		t.Errorf("got\n%s\nexpected\n%s", got, expected)
	}
	if _, err := telemetry.New(r, nil); err == nil {
		t.Error("two sets of metrics in one registry")
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestARegistryTellsWhatIsRunning(t *testing.T) {
	families, err := telemetry.NewRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, n := range []string{"penstock_build_info", "go_goroutines", "process_open_fds"} {
		if !names[n] {
			t.Errorf("no %s", n)
		}
	}
	if b := telemetry.ReadBuild(); b.Go == "" || b.Version == "" {
		t.Errorf("got %+v", b)
	}
}
