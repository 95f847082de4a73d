package split

import (
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// seen is what a window says of the calls of a component at a site to another at
// another.
type seen struct {
	edge, from, to       int // edge, sites
	requests, errors     int64
	service, serviceN    int64 // µs, samples
	network, networkN    int64
	fromNumber, toNumber int // components
}

// learned is what a window has shown.
type learned struct {
	rows    []seen
	index   map[[3]int]int
	bad     int64
	unknown map[string]int64 // requests by name of a site that nobody knows
	blamed  []blamed
}

// learn takes the rows of a window into the state. Rows of a table are sorted, so
// that numbers of components and sums follow from the rows alone.
func (t *Policy) learn(tables map[string]*window.Table, end int64) *learned {
	s := t.state
	l := &learned{index: map[[3]int]int{}, unknown: map[string]int64{}}
	number := end / t.config.Window.Microseconds()
	s.now = end
	s.windows = append([]int64{number}, s.windows[:min(len(s.windows), t.config.History-1)]...)
	if table := tables[window.Delay.Name]; table != nil {
		t.read(l, table)
	}
	t.blame(l)
	t.keep(l, number)
	return l
}

// read adds up the rows of a table by link.
func (t *Policy) read(l *learned, table *window.Table) {
	keys := func(name string) *event.Dict { return table.Key(name) }
	fromC, fromS, toC, toS := keys("from_component"), keys("from_site"), keys("to_component"), keys("to_site")
	requests, errors := table.Column("requests"), table.Column("errors")
	service, network := table.Column("service_us"), table.Column("network_us")
	serviceH, networkH := table.HistColumn("service"), table.HistColumn("network")
	for i := range table.Len() {
		n := requests[i]
		if toC.At(i) == "" {
			continue // Nobody was asked: an entry point has answered by itself.
		}
		if fromC.At(i) == "" && fromS.At(i) == "" && t.coders[toC.At(i)] {
			continue // A coder's own account of its clients: nobody whom a table could steer.
		}
		if n < 0 || errors[i] < 0 || service[i] < 0 || network[i] < 0 {
			l.bad++
			continue
		}
		m, ok := t.siteIndex[fromS.At(i)]
		p, ok2 := t.siteIndex[toS.At(i)]
		if !ok || !ok2 {
			name := toS.At(i)
			if !ok {
				name = fromS.At(i)
			}
			l.unknown[name] += n
			continue
		}
		from, to := t.component(fromC.At(i)), t.component(toC.At(i))
		if from == to {
			// A component that calls itself at another site is the router's business
			// with itself; it has no callee to choose.
			l.bad++
			continue
		}
		key := [3]int{t.edge(from, to), m, p}
		k, ok := l.index[key]
		if !ok {
			k = len(l.rows)
			l.index[key] = k
			l.rows = append(l.rows, seen{edge: key[0], from: m, to: p, fromNumber: from, toNumber: to})
		}
		r := &l.rows[k]
		r.requests += n
		r.errors += errors[i]
		r.service += service[i]
		r.serviceN += serviceH[i].Count()
		r.network += network[i]
		r.networkN += networkH[i].Count()
	}
}

// keep puts what was seen into the histories. What a caller's own slowness added
// is taken off its links and charged to the caller.
func (t *Policy) keep(l *learned, number int64) {
	s, m := t.state, len(t.config.Sites)
	calls := map[int]*sample{} // by replica
	var order []int
	at := func(j, n int) *sample {
		r := j*m + n
		if calls[r] == nil {
			calls[r] = &sample{window: number}
			order = append(order, r)
		}
		return calls[r]
	}
	for i := range l.rows {
		r := &l.rows[i]
		e := &s.edges[r.edge]
		e.links[r.from][r.to].push(sample{window: number, requests: r.requests, errors: r.errors, sum: r.network, count: r.networkN}, t.config.History)
		row := &e.rows[r.from]
		row.present, row.seen = true, s.now
		s.components[r.fromNumber].seen, s.components[r.toNumber].seen = s.now, s.now
		x := at(r.toNumber, r.to)
		x.requests += r.requests
		x.errors += r.errors
		x.sum += r.service
		x.count += r.serviceN
	}
	for _, b := range l.blamed {
		if x := calls[b.component*m+b.site]; x != nil {
			x.extra += b.total
		}
	}
	seconds := t.config.Window.Seconds()
	for _, r := range order {
		rep, x := &s.replicas[r/m][r%m], calls[r]
		rep.present = true
		rep.history.push(*x, t.config.History)
		if x.count > 0 {
			rep.capacity.learn(float64(x.requests)/seconds, float64(x.sum)/float64(x.count), x.count, t.config.MinSamples)
		}
	}
}
