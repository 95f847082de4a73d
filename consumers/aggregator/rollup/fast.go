package rollup

import (
	"cmp"
	"slices"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// fast is the state of the group of that name.
type fast struct {
	components, sites names
	ends              index // component, site → number of the end
	list              []end
	frames            frames[fastWindow]
	service           service
	storage           storage
	size              int

	// Translations of the batch at hand, by its codes + 1.
	fromComponent, fromSite, toComponent, toSite []uint32
	recent                                       [recentLinks]recent

	scratch scratch
}

// recent is where the rows of those codes of the batch at hand went last.
type recent struct {
	codes codes
	frame int32 // −1 for nowhere
	row   int32
}

// codes are those of both ends: component and site, component and site.
type codes [4]int32

// recentLinks is a power of two.
const recentLinks = 64

// place is where recent has the link of those codes, if it has it.
func (c *codes) place() uint32 {
	h := ((uint32(c[0])*31+uint32(c[1]))*31+uint32(c[2]))*31 + uint32(c[3])
	return h * 0x9E3779B9 >> 26 & (recentLinks - 1)
}

// end is one end of a link.
type end struct{ component, site uint32 }

// fastWindow is one window of delay.
type fastWindow struct {
	index index // from, to → row + 1
	rows  []link
}

// link is a row of delay.
type link struct {
	from, to           uint32 // places in fast.list
	requests, errors   int64
	serviceSum, netSum int64
	service, network   samples
}

// longest (µs) is a day: what took longer is a fault of the source, and a
// hundred million of the longest still fit a window's sum.
const longest = 86400 * 1_000_000

// Estimated bytes of a link with its part of the index, and of a window.
const (
	linkBytes       = 192 + 32
	fastWindowBytes = 192 + leastIndex
)

func newFast() *fast {
	return &fast{frames: frames[fastWindow]{width: window.Delay.Width.Microseconds()}, service: newService(), storage: newStorage()}
}

func (*fast) Columns(d *event.Decoder) {
	d.Columns(
		"time", "mark", "from_component", "from_site", "to_component", "to_site",
		"wait_us", "service_us", "network_us", "status",
	)
	d.ColumnsWith("outcome", "op", "bytes", "n", "k")
	d.ColumnsWith("to_server", "class")
	d.ColumnsWith("overdue_us", "class")
}

func (s *fast) Size() int {
	return s.size + s.components.bytes() + s.sites.bytes() + fastWindowBytes*len(s.frames.list) + s.service.bytes() + s.storage.bytes()
}

func (s *fast) Add(b *event.Requests, class []ledger.Class) (excluded int64) {
	s.fromComponent = s.components.codes(&b.FromComponent, s.fromComponent)
	s.fromSite = s.sites.codes(&b.FromSite, s.fromSite)
	s.toComponent = s.components.codes(&b.ToComponent, s.toComponent)
	s.toSite = s.sites.codes(&b.ToSite, s.toSite)
	for i := range s.recent {
		s.recent[i].frame = -1
	}
	var some *storage
	tasks := s.storage.begin(b)
	if tasks {
		some = &s.storage
	}
	excluded = s.service.add(b, class, some)
	var w *fastWindow
	var start, stop int64
	var n int32
	for i, t := range b.Time {
		if class[i] != ledger.Counted {
			continue
		}
		if tasks && s.storage.isTask(b, i) {
			excluded += s.storage.add(b, i, &s.scratch)
			continue
		}
		service, hasService, bad := serviceOf(b.Wait[i], b.Service[i])
		network, hasNetwork, badNetwork := sample(b.Network[i])
		excluded += bad + badNetwork
		c := codes{b.FromComponent.Codes[i], b.FromSite.Codes[i], b.ToComponent.Codes[i], b.ToSite.Codes[i]}
		if c[0] < 0 && c[2] < 0 && !hasService && !hasNetwork {
			continue
		}
		if w == nil || t < start || t >= stop {
			start, n, w = s.frames.find(t)
			stop = start + s.frames.width
		}
		l := s.linkOf(w, n, &c)
		l.requests++
		if event.IsErrorStatus(b.Status[i]) {
			l.errors++
		}
		if hasService {
			l.serviceSum += service
			s.size += l.service.add(service, &s.scratch)
		}
		if hasNetwork {
			l.netSum += network
			s.size += l.network.add(network, &s.scratch)
		}
	}
	return excluded
}

// linkOf returns the link of those codes in window n.
func (s *fast) linkOf(w *fastWindow, n int32, c *codes) *link {
	r := &s.recent[c.place()]
	if r.frame != n || r.codes != *c {
		from := end{s.fromComponent[c[0]+1], s.fromSite[c[1]+1]}
		to := end{s.toComponent[c[2]+1], s.toSite[c[3]+1]}
		*r = recent{codes: *c, frame: n, row: s.link(w, s.end(from), s.end(to))}
	}
	return &w.rows[r.row]
}

// codes is translate with the absent value in front.
func (n *names) codes(d *event.Dict, ids []uint32) []uint32 {
	return n.translate(d, append(ids[:0], 0))
}

// sample returns a delay in µs, whether there is one, and 1 if it was left out.
func sample(v int64) (us int64, ok bool, bad int64) {
	switch {
	case v == event.NullInt:
		return 0, false, 0
	case v < 0 || v > longest:
		return 0, false, 1
	}
	return v, true, 0
}

// serviceOf returns wait + service as one sample.
func serviceOf(wait, service int64) (us int64, ok bool, bad int64) {
	us, ok, bad = sample(service)
	w, hasWait, badWait := sample(wait)
	if hasWait {
		us += w
	}
	if badWait > 0 {
		ok = false
	}
	return us, ok, max(bad, badWait)
}

// end returns the number of an end, from 1.
func (s *fast) end(e end) uint32 {
	v := s.ends.at(pair(e.component, e.site))
	if *v == 0 {
		s.list = append(s.list, e)
		*v = int64(len(s.list))
	}
	return uint32(*v)
}

// link returns the row of a link, new if it must be.
func (s *fast) link(w *fastWindow, from, to uint32) int32 {
	v := w.index.at(pair(from, to))
	if *v == 0 {
		w.rows = append(w.rows, link{from: from - 1, to: to - 1})
		*v = int64(len(w.rows))
		s.size += linkBytes
	}
	return int32(*v - 1)
}

func (s *fast) Tables() []*window.Table {
	s.components.rank()
	s.sites.rank()
	t := window.NewTable(window.Delay)
	var keys [4][]int32
	for _, f := range s.frames.sorted() {
		slices.SortFunc(f.w.rows, func(a, b link) int {
			if c := s.compare(a.from, b.from); c != 0 {
				return c
			}
			return s.compare(a.to, b.to)
		})
		for i := range f.w.rows {
			l := &f.w.rows[i]
			t.Start = append(t.Start, f.start)
			from, to := s.list[l.from], s.list[l.to]
			for k, r := range [...]uint32{
				s.components.ranks[from.component], s.sites.ranks[from.site],
				s.components.ranks[to.component], s.sites.ranks[to.site],
			} {
				keys[k] = append(keys[k], int32(r))
			}
			for v, x := range [...]int64{l.requests, l.errors, l.serviceSum, 0, l.netSum, 0} {
				if window.Delay.Values[v].Merging != window.Hist {
					t.Ints[v] = append(t.Ints[v], x)
				}
			}
			t.Hists[3] = append(t.Hists[3], l.service.take(&s.scratch))
			t.Hists[5] = append(t.Hists[5], l.network.take(&s.scratch))
		}
	}
	t.Keys[0], t.Keys[2] = s.components.column(keys[0]), s.components.column(keys[2])
	t.Keys[1], t.Keys[3] = s.sites.column(keys[1]), s.sites.column(keys[3])
	s.forget()
	var out []*window.Table
	if t.Len() > 0 {
		out = append(out, t)
	}
	if t := s.service.table(); t != nil {
		out = append(out, t)
	}
	if t := s.storage.table(&s.scratch); t != nil {
		out = append(out, t)
	}
	return out
}

func (s *fast) AddGauges(b *event.Gauges, class []ledger.Class) {
	s.service.addGauges(b, class)
	s.storage.addGauges(b, class)
}

// compare orders ends by component, then site.
func (s *fast) compare(a, b uint32) int {
	x, y := s.list[a], s.list[b]
	if c := cmp.Compare(s.components.ranks[x.component], s.components.ranks[y.component]); c != 0 {
		return c
	}
	return cmp.Compare(s.sites.ranks[x.site], s.sites.ranks[y.site])
}

func (s *fast) forget() {
	s.frames.reset(func(w *fastWindow) {
		w.index.reset()
		clear(w.rows) // the histograms are the tables' now
		w.rows = w.rows[:0]
	})
	s.components.reset()
	s.sites.reset()
	s.ends.reset()
	s.list = s.list[:0]
	s.size = 0
}
