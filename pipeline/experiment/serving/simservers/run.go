package simservers

import (
	"context"
	"fmt"

	"penstock/consumers/executor/dispatcher/pool"
)

// system is a run.
type system struct {
	Options
	agenda   agenda
	now      int64
	machines []machine
	byName   map[string]int32
	dbs      []database
	zoneOf   []uint8 // of each request
	phase    []uint8
	began    []int64 // ns at its server
	back     []int64 // response, ns; 0: not back
	inZone   []int   // requests
	places   []int   // that are on, by zone
	stale    []float64
	starts   []pool.Start
	moved    []pool.Placed
	servers  []pool.Server
	left     int // requests that are not back
	out      Outcome
	period   Look
}

// database is those of a zone.
type database struct {
	waiting fifo
	free    int
}

// Run runs the simulation. An error wraps ErrSwitch or is the context's.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	s := &system{Options: o, byName: map[string]int32{}, left: len(o.Requests)}
	if err := s.begin(); err != nil {
		return nil, err
	}
	next, tick, idle := 0, o.Period, 0
	for s.left > 0 || s.now < o.Length {
		at := s.agenda.next()
		if next < len(o.Requests) {
			at = min(at, o.Requests[next].At+o.Hop)
		}
		if o.Period > 0 {
			at = min(at, tick)
		}
		if at == never || s.left == 0 && at >= o.Length || next == len(o.Requests) && idle > patience {
			break
		}
		s.now = at
		var err error
		switch {
		case len(s.agenda.events) > 0 && s.agenda.events[0].at == at:
			idle, err = 0, s.happen(s.agenda.pop())
		case next < len(o.Requests) && o.Requests[next].At+o.Hop == at:
			err = s.arrive(next)
			next++
		default:
			tick += o.Period
			idle++
			if err = ctx.Err(); err == nil {
				err = s.step()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if s.left > 0 {
		return nil, fmt.Errorf("%w: %d requests were never started", ErrSwitch, s.left)
	}
	return s.end(), nil
}

// patience is how many periods may pass in which nothing happens while requests wait.
const patience = 10000

// never is later than all.
const never = int64(1) << 62

func (a *agenda) next() int64 {
	if len(a.events) == 0 {
		return never
	}
	return a.events[0].at
}

func (s *system) begin() error {
	n := len(s.Requests)
	s.zoneOf, s.phase, s.began, s.back = make([]uint8, n), make([]uint8, n), make([]int64, n), make([]int64, n)
	s.inZone, s.places, s.stale = make([]int, len(s.Zones)), make([]int, len(s.Zones)), make([]float64, len(s.Zones))
	s.dbs = make([]database, len(s.Zones))
	s.period.Servers, s.period.Zones = make([]State, len(s.Servers)), make([]Load, len(s.Zones))
	for z := range s.dbs {
		s.dbs[z].free = s.Databases
	}
	s.machines = make([]machine, len(s.Servers))
	for i := range s.Servers {
		s.machines[i].Server = &s.Servers[i]
		s.byName[s.Servers[i].Name] = int32(i)
	}
	s.out.Started = make([]int, len(s.Servers))
	if s.Switcher == nil {
		for i := range s.machines {
			s.machines[i].state = On
		}
	} else {
		for _, i := range s.Switcher.First() {
			s.machines[i].state = On
		}
	}
	for z := range s.Zones {
		if err := s.tell(z); err != nil {
			return err
		}
	}
	return nil
}

// tell tells a zone's switch which servers are on.
func (s *system) tell(zone int) error {
	s.servers, s.places[zone] = s.servers[:0], 0
	for i := range s.machines {
		if m := &s.machines[i]; m.Zone == zone && m.state == On {
			s.servers = append(s.servers, pool.Server{Name: m.Name, Weight: m.Weight, M: s.M})
			s.places[zone] += s.M
		}
	}
	var err error
	if s.moved, s.starts, err = s.Zones[zone].SetServers(s.now, s.servers, s.moved[:0], s.starts[:0]); err != nil {
		return fmt.Errorf("%w: %w", ErrSwitch, err)
	}
	return s.start()
}

// arrive brings a request to the first-level switch, and on to that of a zone.
func (s *system) arrive(i int) error {
	zone := s.zone()
	r := &s.Requests[i]
	s.zoneOf[i] = uint8(zone)
	s.inZone[zone]++
	var err error
	_, s.starts, err = s.Zones[zone].Arrive(s.now, pool.Request{
		ID: uint64(i) + 1, Class: int(r.Page), Size: r.KB * 1000, Dynamic: r.Dynamic, Entered: max(1, r.At), Impact: impact(r.Dynamic),
	}, s.starts[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSwitch, err)
	}
	return s.start()
}

// impact is CAP's class: static requests ask the disk, dynamic ones the database.
func impact(dynamic bool) uint8 {
	if dynamic {
		return 1
	}
	return 0
}

// zone chooses one of those with a server on.
func (s *system) zone() int {
	best, least, tie := 0, 0.0, 0.0
	first := true
	for z := range s.Zones {
		if s.places[z] == 0 {
			continue
		}
		load := float64(s.inZone[z]) / float64(s.places[z])
		value := load
		if s.ByPenalty {
			value = 0
			if s.inZone[z] > 0 {
				value = s.stale[z] / float64(s.inZone[z])
			}
		}
		if first || value < least || value == least && load < tie {
			first, best, least, tie = false, z, value, load
		}
	}
	return best
}

// start sends requests to servers.
func (s *system) start() error {
	for k := range s.starts {
		x := &s.starts[k]
		i, known := s.byName[x.Server]
		if !known || x.ID == 0 || x.ID > uint64(len(s.Requests)) {
			return fmt.Errorf("%w: request %d started at %q", ErrSwitch, x.ID, x.Server)
		}
		m, r := &s.machines[i], int32(x.ID-1)
		if m.inService >= s.M || m.state != On || s.began[r] != 0 {
			return fmt.Errorf("%w: request %d started at %s, which has %d in service, at %d ns (before: %d)", ErrSwitch, x.ID, x.Server, m.inService, s.now, s.began[r])
		}
		m.count(s.now)
		m.inService++
		s.began[r] = max(1, s.now)
		s.out.Started[i]++
		s.offer(i, &m.cpu, r)
	}
	return nil
}

// offer puts a request in front of a server's CPU or disk.
func (s *system) offer(i int32, at *station, r int32) {
	if at.busy {
		at.waiting.push(r)
		return
	}
	s.serve(i, at, r)
}

func (s *system) serve(i int32, at *station, r int32) {
	m, q := &s.machines[i], &s.Requests[r]
	at.busy, at.serving = true, r
	if at == &m.disk {
		s.agenda.push(m.finish(s.now, q.Disk), diskDone, i)
		return
	}
	work := q.Before
	if s.phase[r] > 0 {
		work = q.Behind
	}
	s.agenda.push(m.finish(s.now, work), cpuDone, i)
}

// leave frees a station and takes its next in.
func (s *system) leave(i int32, at *station) int32 {
	r := at.serving
	at.busy = false
	if next, some := at.waiting.pop(); some {
		s.serve(i, at, next)
	}
	return r
}
