package dispatcher

import "github.com/prometheus/client_golang/prometheus"

// collector shows a site to Prometheus. All is read when it is asked for.
type collector struct {
	s *Site

	requests, ended, moved, late, penalty, waited, epoch, homeless *prometheus.Desc
	zoneRequests, weight                                           *prometheus.Desc
	started, trials, inService, queued, share, potential, wait     *prometheus.Desc
	failure, slowdown, usable, answers, estimated, took            *prometheus.Desc
}

func newCollector(s *Site) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("penstock_dispatcher_"+name, help, labels, prometheus.Labels{"site": s.o.Site})
	}
	return &collector{
		s:            s,
		requests:     desc("requests_total", "Requests that asked for a place at a server, by what became of that.", "result"),
		ended:        desc("ended_total", "Requests that had a place, by how they ended.", "result"),
		moved:        desc("moved_total", "How often a waiting request was placed anew."),
		late:         desc("late_total", "Requests answered after the limit of their class."),
		penalty:      desc("penalty_total", "Penalties of late requests, in units of cost."),
		waited:       desc("waited_seconds_total", "What requests waited for their places."),
		epoch:        desc("table_epoch", "Epoch of the table in force, 0 for the default."),
		homeless:     desc("homeless", "Requests that wait for any server to come back."),
		zoneRequests: desc("zone_requests", "Requests that wait or are in service, by zone.", "zone"),
		weight:       desc("zone_weight", "Weight in force, by zone.", "zone"),
		started:      desc("started_total", "Requests that were given to the server.", "zone", "server"),
		trials:       desc("trials_total", "Requests that were given to the server to see whether it is fast again.", "zone", "server"),
		inService:    desc("in_service", "Requests in service at the server, of this entry point.", "zone", "server"),
		queued:       desc("queued", "Requests that wait for the server.", "zone", "server", "kind"),
		share:        desc("places", "Most requests in service at the server, of this entry point.", "zone", "server"),
		potential:    desc("potential_penalty", "Potential penalty of the requests that wait for the server, in units of cost.", "zone", "server"),
		wait:         desc("expected_wait_seconds", "What a request that came now would wait for the server.", "zone", "server"),
		answers:      desc("answers_total", "Requests that the server answered.", "zone", "server"),
		estimated:    desc("estimated_seconds_total", "Service times that were estimated of the requests that the server answered.", "zone", "server"),
		took:         desc("service_seconds_total", "Service times of the requests that the server answered.", "zone", "server"),
		failure:      desc("estimate_error", "Mean relative error of estimates.", "zone", "server", "of"),
		slowdown:     desc("slowdown", "How much longer the requests in service run than was estimated, at least 1.", "zone", "server"),
		usable:       desc("usable", "1 if the server gets new requests.", "zone", "server", "state"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.requests, c.ended, c.moved, c.late, c.penalty, c.waited, c.epoch, c.homeless, c.zoneRequests, c.weight, c.started, c.trials,
		c.inService, c.queued, c.share, c.potential, c.wait, c.failure, c.slowdown, c.usable, c.answers, c.estimated, c.took,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := c.s.State()
	n := &st.Counts
	count(c.requests, float64(n.Started), "started")
	count(c.requests, float64(n.Full), "full")
	count(c.requests, float64(n.NoServer), "no-server")
	count(c.requests, float64(n.Left), "left")
	count(c.ended, float64(n.Answered), "answered")
	count(c.ended, float64(n.Failed), "failed")
	count(c.ended, float64(n.Gone), "gone")
	count(c.moved, float64(n.Moved))
	count(c.late, float64(n.Late))
	count(c.penalty, n.Penalty)
	count(c.waited, n.Waited.Seconds())
	gauge(c.epoch, float64(st.Table.Epoch))
	gauge(c.homeless, float64(st.Homeless))
	for i := range st.Zones {
		z := &st.Zones[i]
		gauge(c.zoneRequests, float64(z.Requests), z.Name)
		gauge(c.weight, z.Weight, z.Name)
		for j := range z.Servers {
			c.server(count, gauge, z.Name, &z.Servers[j])
		}
	}
}

// server shows one server.
func (c *collector) server(count, gauge func(*prometheus.Desc, float64, ...string), zone string, s *ServerState) {
	count(c.started, float64(s.Started), zone, s.Name)
	count(c.trials, float64(s.Trials), zone, s.Name)
	count(c.answers, float64(s.Answers), zone, s.Name)
	count(c.estimated, s.Estimated.Seconds(), zone, s.Name)
	count(c.took, s.Took.Seconds(), zone, s.Name)
	gauge(c.inService, float64(s.InService), zone, s.Name)
	gauge(c.queued, float64(s.Queued-s.QueuedDynamic), zone, s.Name, "static")
	gauge(c.queued, float64(s.QueuedDynamic), zone, s.Name, "dynamic")
	gauge(c.share, float64(s.Share), zone, s.Name)
	gauge(c.potential, s.Potential, zone, s.Name)
	gauge(c.wait, s.Wait.Seconds(), zone, s.Name)
	gauge(c.failure, s.ServiceError, zone, s.Name, "service")
	gauge(c.failure, s.WaitError, zone, s.Name, "wait")
	gauge(c.slowdown, s.Slowdown, zone, s.Name)
	usable := 0.0
	if s.State == StateUsed || s.State == StateRamping {
		usable = 1
	}
	gauge(c.usable, usable, zone, s.Name, s.State)
}
