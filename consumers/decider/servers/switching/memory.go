package switching

// Memory is all that a rule goes by beside its options and the observation at hand, and
// all that a snapshot holds of it.
type Memory struct {
	now     int64 // end of the last period, noTime: none
	changed int64 // when how many run was last changed, noTime: never
	want    int64 // how many are to run, 0: not decided yet
	quiet   int64 // periods running in which one could have been turned off
	ceiling float64
	// Smoothed over a longer time than history: the load in places, below 0 where it is not
	// known, and the penalty per second.
	level, pain float64
	servers     []serverMemory
	zones       []zoneMemory
	history     []period // of the last Hold periods, oldest first
	season      season
	// figures of the last observation, if there was one since the memory was read: they follow
	// from the rest and what came in.
	figures Figures
	figured bool
}

type serverMemory struct {
	switched int64 // when it was last turned on or off, noTime: never
	failed   int64 // since when it has failed, noTime: it hasn't
}

type zoneMemory struct {
	service float64 // s, mean time in service of a request, smoothed; 0: not known
	weight  float64 // its share
}

// period is an observation as it is remembered.
type period struct {
	at     int64
	gauged bool
	zones  []Load
}

func newMemory(o *Options, zones int) Memory {
	m := Memory{now: noTime, changed: noTime, ceiling: o.Utilisation, level: -1, servers: make([]serverMemory, len(o.Servers)), zones: make([]zoneMemory, zones)}
	for i := range m.servers {
		m.servers[i] = serverMemory{switched: noTime, failed: noTime}
	}
	m.season = newSeason(o)
	return m
}

// remember adds a period to the history of at most hold.
func (m *Memory) remember(o *Observation, hold int) {
	var p period
	if len(m.history) >= hold { // The oldest one's memory is used again.
		p = m.history[0]
		copy(m.history, m.history[1:])
		m.history = m.history[:len(m.history)-1]
	}
	p.at, p.gauged = o.At, o.Gauged
	p.zones = append(p.zones[:0], o.Zones...)
	m.history = append(m.history, p)
}
