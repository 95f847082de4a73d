package rollup

import (
	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// service is the rollup of that name: requests by site, server and class, and the queues
// in front of servers.
type service struct {
	sites, servers, classes names
	places                  index // site, server → number of the place
	list                    []servedPlace
	frames                  frames[serviceWindow]
	size                    int

	// Translations of the batch at hand, by its codes + 1.
	site, server, class []uint32
	recent              [recentServed]recentOfServer
}

// servedPlace is whose requests or queue a row is of.
type servedPlace struct{ site, server uint32 }

// serviceWindow is one window of service.
type serviceWindow struct {
	index index // place, class → row + 1
	rows  []serviceRow
}

// serviceRow is a row of service.
type serviceRow struct {
	place, class                             uint32
	requests, errors, wait, served, inServed int64
	limited, overdue, late                   int64
	gauges                                   int64
	queued, inService, potential             sampled
	static, dynamic                          int64
}

// sampled is the sum and the greatest of what gauges said.
type sampled struct{ sum, most int64 }

func (s *sampled) add(v int64) {
	if v != event.NullInt {
		s.sum += v
		s.most = max(s.most, v)
	}
}

// recentOfServer is where the rows of those codes of the batch at hand went last.
type recentOfServer struct {
	codes [3]int32 // site, server, class
	frame int32    // −1 for nowhere
	row   int32
}

// recentServed is a power of two.
const recentServed = 64

// Estimated bytes of a row of service with its part of the indexes, and of a window.
const (
	serviceRowBytes    = 160 + 64
	serviceWindowBytes = 192 + leastIndex
)

func newService() service {
	return service{frames: frames[serviceWindow]{width: window.Service.Width.Microseconds()}}
}

func (s *service) bytes() int {
	return s.size + s.sites.bytes() + s.servers.bytes() + s.classes.bytes() + serviceWindowBytes*len(s.frames.list)
}

// add counts the rows of a batch that name their server or know their limit, but for
// tasks, of which there are some unless it is nil. It returns how many values were left
// out that no other rollup looks at.
func (s *service) add(b *event.Requests, class []ledger.Class, tasks *storage) (excluded int64) {
	servers := len(b.ToServer.Values) > 0
	limits := false
	for _, v := range b.Overdue {
		if v != event.NullInt {
			limits = true
			break
		}
	}
	if !servers && !limits {
		return 0
	}
	s.site = s.sites.codes(&b.ToSite, s.site)
	s.server = s.servers.codes(&b.ToServer, s.server)
	s.class = s.classes.codes(&b.Class, s.class)
	s.forgetRecent()
	var w *serviceWindow
	var start, stop int64
	var n int32
	for i, t := range b.Time {
		c := [3]int32{b.ToSite.Codes[i], b.ToServer.Codes[i], b.Class.Codes[i]}
		if class[i] != ledger.Counted || c[1] < 0 && b.Overdue[i] == event.NullInt || tasks != nil && tasks.isTask(b, i) {
			continue
		}
		if w == nil || t < start || t >= stop {
			start, n, w = s.frames.find(t)
			stop = start + s.frames.width
		}
		excluded += s.rowOf(w, n, c).add(b, i)
	}
	return excluded
}

// add counts row i of a batch; it returns how many values of overdue were left out.
// Waits and times in service that are none are counted by delay.
func (r *serviceRow) add(b *event.Requests, i int) (excluded int64) {
	r.requests++
	if event.IsErrorStatus(b.Status[i]) {
		r.errors++
	}
	if us, ok, _ := sample(b.Wait[i]); ok {
		r.wait += us
	}
	if us, ok, _ := sample(b.Service[i]); ok {
		r.served++
		r.inServed += us
	}
	us, ok, bad := sample(b.Overdue[i])
	if ok {
		r.limited++
		r.overdue += us
		if us > 0 {
			r.late++
		}
	}
	return bad
}

func (s *service) forgetRecent() {
	for i := range s.recent {
		s.recent[i].frame = -1
	}
}

// rowOf returns the row of those codes in window n, which is w.
func (s *service) rowOf(w *serviceWindow, n int32, c [3]int32) *serviceRow {
	h := (uint32(c[0])*31+uint32(c[1]))*31 + uint32(c[2])
	r := &s.recent[h*0x9E3779B9>>26&(recentServed-1)]
	if r.frame != n || r.codes != c {
		*r = recentOfServer{codes: c, frame: n, row: s.row(w, s.site[c[0]+1], s.server[c[1]+1], s.class[c[2]+1])}
	}
	return &w.rows[r.row]
}

// row returns the number of the row of a key in a window, new if it must be.
func (s *service) row(w *serviceWindow, site, server, class uint32) int32 {
	p := s.places.at(pair(site, server))
	if *p == 0 {
		s.list = append(s.list, servedPlace{site, server})
		*p = int64(len(s.list))
	}
	place := uint32(*p)
	v := w.index.at(pair(place, class))
	if *v == 0 {
		none := sampled{most: window.NullInt}
		w.rows = append(w.rows, serviceRow{place: place - 1, class: class, queued: none, inService: none, potential: none})
		*v = int64(len(w.rows))
		s.size += serviceRowBytes
	}
	return int32(*v - 1)
}

// addGauges adds up the queues that were counted and of which something is known.
func (s *service) addGauges(b *event.Gauges, class []ledger.Class) {
	s.site = s.sites.codes(&b.Site, s.site)
	s.server = s.servers.codes(&b.Server, s.server)
	for i, t := range b.Time {
		if class[i] != ledger.Counted || !knows(b, i) {
			continue
		}
		_, _, w := s.frames.find(t)
		r := &w.rows[s.row(w, s.site[b.Site.Codes[i]+1], s.server[b.Server.Codes[i]+1], 0)]
		r.gauges++
		r.queued.add(b.Queued[i])
		r.inService.add(b.InService[i])
		r.potential.add(b.PotentialOverdue[i])
		if v := b.QueuedStatic[i]; v != event.NullInt {
			r.static += v
		}
		if v := b.QueuedDynamic[i]; v != event.NullInt {
			r.dynamic += v
		}
	}
}

// knows reports whether gauge i tells of a queue in front of a server: one that knows a
// backlog alone is a coder's.
func knows(b *event.Gauges, i int) bool {
	const null = event.NullInt
	return b.Queued[i] != null || b.InService[i] != null || b.PotentialOverdue[i] != null || b.QueuedStatic[i] != null || b.QueuedDynamic[i] != null
}

// table returns what was added up, nil if that is nothing, and forgets it.
func (s *service) table() *window.Table {
	t := window.NewTable(window.Service)
	for _, f := range s.frames.list {
		for i := range f.w.rows {
			r := &f.w.rows[i]
			at := s.list[r.place]
			t.Append(f.start, []string{s.sites.clone(at.site), s.servers.clone(at.server), s.classes.clone(r.class)}, []int64{
				r.requests, r.errors, r.wait, r.served, r.inServed, r.limited, r.overdue, r.late,
				r.gauges, r.queued.sum, r.queued.most, r.inService.sum, r.inService.most, r.static, r.dynamic, r.potential.sum, r.potential.most,
			})
		}
	}
	s.forget()
	if t.Len() == 0 {
		return nil
	}
	t.Sort()
	return t
}

func (s *service) forget() {
	s.frames.reset(func(w *serviceWindow) {
		w.index.reset()
		w.rows = w.rows[:0]
	})
	s.sites.reset()
	s.servers.reset()
	s.classes.reset()
	s.places.reset()
	s.list = s.list[:0]
	s.size = 0
}
