package rollup

import (
	"fmt"
	"math"
	"slices"

	"penstock/consumers/aggregator/ledger"
	"penstock/schemas/event"
	"penstock/schemas/sphere"
	"penstock/schemas/window"
)

// plain adds requests up in maps, one row at a time, as DESIGN §3.2 says it.
type plain map[string]*[20]int64

type cell struct {
	rows  plain
	hists map[string]map[uint16]int64
}

func newPlain() *cell { return &cell{rows: plain{}, hists: map[string]map[uint16]int64{}} }

func (c *cell) row(rollup string, start int64, keys ...string) *[20]int64 {
	k := fmt.Sprintf("%s %d %q", rollup, start, keys)
	if c.rows[k] == nil {
		c.rows[k] = &[20]int64{}
	}
	return c.rows[k]
}

func (c *cell) count(rollup string, start int64, value string, v int64, keys ...string) {
	k := fmt.Sprintf("%s %d %q %s", rollup, start, keys, value)
	if c.hists[k] == nil {
		c.hists[k] = map[uint16]int64{}
	}
	c.hists[k][window.Bin(v)]++
}

func (c *cell) add(group string, r *event.Request, class ledger.Class) (excluded int64) {
	if class == ledger.Quarantined {
		return 0
	}
	hour, ten := window.Start(r.Time, window.Traffic.Width), window.Start(r.Time, window.Delay.Width)
	sums := func(rollup string) {
		v := c.row(rollup, hour, r.Owner, r.ToSite)
		v[0]++
		v[3] += r.Bytes
		if r.Op == event.Write {
			v[2]++
			v[4] += r.Bytes
		} else {
			v[1]++
		}
	}
	if group == window.Fast {
		switch {
		case class != ledger.Counted:
		case event.IsTask(r.Outcome):
			excluded = c.task(r, ten)
		default:
			excluded = c.delay(r, ten) + c.service(r)
		}
		return excluded
	}
	if class == ledger.Late {
		sums("late")
		return 0
	}
	if event.IsTask(r.Outcome) {
		return 0
	}
	if r.Owner != "" {
		sums("traffic")
	}
	if r.Owner != "" && r.User != "" {
		c.row("interactions", hour, r.User, r.Owner)[0]++
	}
	if r.User != "" && r.HasPlace() {
		v := c.row("places", hour, r.User)
		lat, lon := window.ToFloat32(v[1]), window.ToFloat32(v[2])
		if v[3] == 0 || r.Time > v[0] || r.Time == v[0] && (r.Lat > lat || r.Lat == lat && r.Lon > lon) {
			v[0], v[1], v[2] = r.Time, window.FromFloat32(r.Lat), window.FromFloat32(r.Lon)
		}
		u := sphere.FromDegrees(float64(r.Lat), float64(r.Lon))
		v[3]++
		v[4] += int64(math.Round(u.X * 1e9))
		v[5] += int64(math.Round(u.Y * 1e9))
		v[6] += int64(math.Round(u.Z * 1e9))
	}
	return 0
}

func (c *cell) delay(r *event.Request, ten int64) (excluded int64) {
	usable := func(v int64) bool { return v >= 0 && v <= longest }
	absent := func(v int64) bool { return v == event.NullInt }
	service, network := r.Service, r.Network
	if !absent(r.Wait) && !usable(r.Wait) || !absent(service) && !usable(service) {
		service = event.NullInt
		excluded++
	} else if !absent(service) && !absent(r.Wait) {
		service += r.Wait
	}
	if !absent(network) && !usable(network) {
		network = event.NullInt
		excluded++
	}
	if r.FromComponent == "" && r.ToComponent == "" && absent(service) && absent(network) {
		return excluded
	}
	keys := []string{r.FromComponent, r.FromSite, r.ToComponent, r.ToSite}
	v := c.row("delay", ten, keys...)
	v[0]++
	if r.Status == 0 || r.Status >= 500 {
		v[1]++
	}
	if !absent(service) {
		v[2] += service
		c.count("delay", ten, "service", service, keys...)
	}
	if !absent(network) {
		v[4] += network
		c.count("delay", ten, "network", network, keys...)
	}
	return excluded
}

// service adds a request at a server up.
func (c *cell) service(r *event.Request) (excluded int64) {
	if r.ToServer == "" && r.Overdue == event.NullInt {
		return 0
	}
	v := c.served(r.Time, r.ToSite, r.ToServer, r.Class)
	v[0]++
	if r.Status == 0 || r.Status >= 500 {
		v[1]++
	}
	usable := func(v int64) bool { return v >= 0 && v <= longest }
	if usable(r.Wait) {
		v[2] += r.Wait
	}
	if usable(r.Service) {
		v[3]++
		v[4] += r.Service
	}
	switch {
	case usable(r.Overdue):
		v[5]++
		v[6] += r.Overdue
		if r.Overdue > 0 {
			v[7]++
		}
	case r.Overdue != event.NullInt:
		excluded++
	}
	return excluded
}

// served is the row of service of a time.
func (c *cell) served(time int64, keys ...string) *[20]int64 {
	v := c.row("service", window.Start(time, window.Service.Width), keys...)
	if v[0] == 0 && v[8] == 0 {
		v[10], v[12], v[16] = window.NullInt, window.NullInt, window.NullInt
	}
	return v
}

// task adds a chunk task up.
func (c *cell) task(r *event.Request, ten int64) (excluded int64) {
	number := func(n uint8) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	keys := []string{r.ToServer, r.Op.String(), number(r.N), number(r.K), fmt.Sprint(len(fmt.Sprintf("%b", r.Bytes))), r.Outcome}
	if r.Bytes == 0 {
		keys[4] = "0"
	}
	v := c.row("storage", ten, keys...)
	if v[0] == 0 {
		v[2], v[4], v[8] = r.Bytes, window.NullInt, window.NullInt
	}
	v[0]++
	v[1] += r.Bytes
	v[2] = min(v[2], r.Bytes)
	d := r.Service
	if d < 0 || d > longest || r.Network != event.NullInt && (r.Network < 0 || r.Network > longest) {
		if d != event.NullInt || r.Network != event.NullInt && (r.Network < 0 || r.Network > longest) {
			return 1
		}
		return 0
	}
	if r.Network != event.NullInt {
		d += r.Network
	}
	v[3] += d
	if v[4] == window.NullInt || d < v[4] {
		v[4] = d
	}
	c.count("storage", ten, "delay", d, keys...)
	return 0
}

// gauge adds a queue up: its backlog, or what waits in front of a server.
func (c *cell) gauge(group string, g *event.Gauge, class ledger.Class) {
	if group != window.Fast || class != ledger.Counted {
		return
	}
	if of := []int64{g.Queued, g.InService, g.QueuedStatic, g.QueuedDynamic, g.PotentialOverdue}; slices.Max(of) != event.NullInt {
		v := c.served(g.Time, g.Site, g.Server, "")
		v[8]++
		for i, at := range []int{9, 11, 13, 14, 15} {
			if of[i] != event.NullInt {
				v[at] += of[i]
			}
		}
		v[10], v[12], v[16] = max(v[10], g.Queued), max(v[12], g.InService), max(v[16], g.PotentialOverdue)
	}
	if g.Backlog == event.NullInt {
		return
	}
	v := c.row("storage", window.Start(g.Time, window.Storage.Width), g.Server, "", "", "", "", "")
	if v[6] == 0 {
		v[2], v[4] = window.NullInt, window.NullInt
	}
	v[6]++
	v[7] += g.Backlog
	v[8] = max(v[8], g.Backlog)
}

// cells turns tables into the plain form; a row that is there twice fails.
func cells(tables []*window.Table) (*cell, error) {
	c := newPlain()
	for _, t := range tables {
		for i := range t.Len() {
			var keys []string
			for k := range t.Keys {
				keys = append(keys, t.Keys[k].At(i))
			}
			k := fmt.Sprintf("%s %d %q", t.Rollup.Name, t.Start[i], keys)
			if c.rows[k] != nil {
				return nil, fmt.Errorf("row %s is there twice", k)
			}
			v := &[20]int64{}
			for n, val := range t.Rollup.Values {
				if val.Merging != window.Hist {
					v[n] = t.Ints[n][i]
					continue
				}
				h := t.Hists[n][i]
				for b := range h.Index {
					hk := k + " " + val.Name
					if c.hists[hk] == nil {
						c.hists[hk] = map[uint16]int64{}
					}
					c.hists[hk][h.Index[b]] += h.Counts[b]
				}
			}
			c.rows[k] = v
		}
	}
	return c, nil
}
