package picker

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// What came of questions, in metrics.
const (
	gotTable   = "table"   // a split
	gotDefault = "default" // no table has these calls
	gotSame    = "same"    // nothing new
	gotOlder   = "older"   // an older table, which was refused
	gotRefusal = "refusal" // the API says why not
	gotRubbish = "rubbish" // not to be read, or about something else
	gotNothing = "nothing" // the API can't be reached
)

type metrics struct {
	answers  *prometheus.CounterVec
	out      prometheus.Counter
	noServer prometheus.Counter
	tooMany  prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "penstock_picker_" + name, Help: help})
	}
	m := &metrics{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_picker_answers_total", Help: "Questions for a split, by what came of them.",
		}, []string{"result"}),
		out:      counter("servers_out_total", "Servers that were put out because requests to them failed."),
		noServer: counter("no_server_total", "Picks for which no server was known."),
		tooMany:  counter("unfollowed_total", "Components that are not followed, because they can't be or are too many."),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.answers, m.out, m.noServer, m.tooMany} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics of a picker: %w", err)
		}
	}
	return m, nil
}
