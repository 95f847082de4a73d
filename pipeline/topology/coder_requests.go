package topology

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"penstock/consumers/executor/coder/queue"
	"penstock/consumers/executor/coder/s3front"
	"penstock/consumers/executor/coder/tasklog"
)

// requestMeter counts the requests of clients of a coder, and tells the log of those that
// read or write objects.
type requestMeter struct {
	log      *tasklog.Log
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
}

// newRequestMeter registers the metrics.
func newRequestMeter(r prometheus.Registerer, name string, log *tasklog.Log) (*requestMeter, error) {
	own := prometheus.Labels{"coder": name}
	m := &requestMeter{
		log: log,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "penstock", Name: "coder_requests_total", ConstLabels: own,
			Help: "Requests of clients, by operation, status (0: cut off) and S3's name of the error: SlowDown is a full queue.",
		}, []string{"operation", "status", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "penstock", Name: "coder_request_seconds", ConstLabels: own, Help: "From a request's first byte to its answer's last.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"operation"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "penstock", Name: "coder_request_bytes_total", ConstLabels: own, Help: "Bytes of bodies that clients sent and got.",
		}, []string{"direction"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.bytes} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

// observe is s3front.Options.Observe.
func (m *requestMeter) observe(r s3front.Request) {
	operation := r.Operation
	if strings.ToUpper(operation) == operation {
		operation = "other" // The method of what is no operation is the client's own word.
	}
	m.requests.WithLabelValues(operation, strconv.Itoa(r.Status), r.Code).Inc()
	m.seconds.WithLabelValues(operation).Observe(r.Took.Seconds())
	m.bytes.WithLabelValues("received").Add(float64(r.Received))
	m.bytes.WithLabelValues("sent").Add(float64(r.Sent))
	q := tasklog.Request{Op: queue.Read, Bytes: r.Sent, Service: r.Took, Status: r.Status}
	switch r.Operation {
	case "GetObject":
	case "PutObject", "UploadPart":
		q.Op, q.Bytes = queue.Write, r.Received
	default:
		return // It moves no content.
	}
	if r.Status < http.StatusBadRequest || r.Status >= http.StatusInternalServerError {
		m.log.Request(q)
	}
}
