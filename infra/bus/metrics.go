package bus

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of a bus. They count without a registry too.
type metrics struct {
	recreated *prometheus.CounterVec
	messages  *prometheus.CounterVec
	bytes     *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "penstock_bus_" + name, Help: help}, labels)
	}
	m := &metrics{
		recreated: counter("reader_recreated_total",
			"Consumers made anew under a running reader, by reason.", "stream", "reason"),
		messages: counter("reader_messages_total", "Messages that readers delivered.", "stream"),
		bytes:    counter("reader_bytes_total", "Bytes of the messages that readers delivered.", "stream"),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []**prometheus.CounterVec{&m.recreated, &m.messages, &m.bytes} {
		err := r.Register(*c)
		var already prometheus.AlreadyRegisteredError
		if errors.As(err, &already) {
			if have, ok := already.ExistingCollector.(*prometheus.CounterVec); ok {
				*c, err = have, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("bus metrics: %w", err)
		}
	}
	return m, nil
}
