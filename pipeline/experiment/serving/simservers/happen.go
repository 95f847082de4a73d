package simservers

import (
	"penstock/consumers/executor/dispatcher/pool"
)

// happen does what an event asks for. The server of a request at a database is kept in the
// upper bits of its event.
func (s *system) happen(e event) error {
	switch e.kind {
	case diskDone:
		m := &s.machines[e.of]
		r := s.leave(e.of, &m.disk)
		s.phase[r] = 2
		s.offer(e.of, &m.cpu, r)
	case cpuDone:
		m := &s.machines[e.of]
		r := s.leave(e.of, &m.cpu)
		switch {
		case s.phase[r] == 0:
			s.phase[r] = 1
			s.offer(e.of, &m.disk, r)
		case s.Requests[r].Database > 0:
			s.ask(m.Zone, r, e.of)
		default:
			return s.finish(r, e.of)
		}
	case databaseDone:
		r := e.of
		i := s.at(r)
		db := &s.dbs[s.machines[i].Zone]
		db.free++
		if next, some := db.waiting.pop(); some {
			s.query(db, next)
		}
		return s.finish(r, i)
	case serverReady:
		m := &s.machines[e.of]
		if m.state != Starting || m.ready != s.now { // It was turned off meanwhile.
			return nil
		}
		m.state = On
		return s.tell(m.Zone)
	}
	return nil
}

// ask brings a request to its zone's databases; phase keeps its server from here on.
func (s *system) ask(zone int, r, server int32) {
	s.phase[r] = uint8(server) + atServer
	db := &s.dbs[zone]
	if db.free == 0 {
		db.waiting.push(r)
		return
	}
	s.query(db, r)
}

// atServer is above all phases; a request at a database has its server's index added.
const atServer = 3

func (s *system) at(r int32) int32 { return int32(s.phase[r] - atServer) }

func (s *system) query(db *database, r int32) {
	db.free--
	s.agenda.push(s.now+s.Requests[r].Database, databaseDone, r)
}

// finish brings a request back from its server.
func (s *system) finish(r, i int32) error {
	m, q := &s.machines[i], &s.Requests[r]
	m.count(s.now)
	m.inService--
	s.left--
	s.back[r] = s.now + s.Hop - q.At
	c := &s.Classes[q.Page]
	penalty := c.Penalty * max(0, float64(s.back[r])/1e9-c.Limit)
	s.out.Penalty += penalty
	z := int(s.zoneOf[r])
	s.inZone[z]--
	l := &s.period.Zones[z]
	service := float64(s.now-s.began[r]) / 1e9
	l.Requests++
	l.Service += service
	l.Penalty += penalty
	s.starts = s.Zones[z].Done(s.now, uint64(r)+1, pool.Outcome{OK: true, Service: service}, s.starts[:0])
	if m.state == Draining && m.inService == 0 {
		s.off(m)
	}
	return s.start()
}

// off ends a server's cost.
func (s *system) off(m *machine) {
	m.state = Off
	s.out.ServerSeconds += float64(s.now-m.since) / 1e9
}

// step is the end of a period: what is seen then, and what the switcher makes of it.
func (s *system) step() error {
	l := &s.period
	l.At = s.now
	for z, w := range s.Zones {
		x := &l.Zones[z]
		x.Queued, _ = w.Len()
		x.Potential = w.Potential(s.now)
		s.stale[z] = x.Potential
	}
	for i := range s.machines {
		m := &s.machines[i]
		m.count(s.now)
		l.Servers[i] = m.state
		l.Zones[m.Zone].InService += float64(m.slotTime) / float64(s.Period)
		m.slotTime = 0
	}
	if s.Watch != nil {
		s.Watch(l)
	}
	var err error
	if s.Switcher != nil {
		err = s.change(s.Switcher.Step(l))
	}
	clear(l.Zones)
	return err
}

// change turns servers on and off.
func (s *system) change(on, off []int) error {
	for _, i := range on {
		m := &s.machines[i]
		switch m.state {
		case Off:
			m.state, m.since, m.ready = Starting, s.now, s.now+s.StartDelay
			s.agenda.push(m.ready, serverReady, int32(i))
		case Draining: // It has not stopped yet.
			m.state = On
			if err := s.tell(m.Zone); err != nil {
				return err
			}
		default:
			continue
		}
		s.out.Changes++
	}
	for _, i := range off {
		m := &s.machines[i]
		if m.state != On && m.state != Starting {
			continue
		}
		s.out.Changes++
		was := m.state
		if m.state = Draining; m.inService == 0 {
			s.off(m)
		}
		if was == Starting {
			continue
		}
		if err := s.tell(m.Zone); err != nil {
			return err
		}
	}
	return nil
}
