package switching

import (
	"encoding/hex"

	"penstock/consumers/decider/statecode"
)

// Memory is what the rule goes by beside its options: what a snapshot holds.
func (r *Rule) Memory() *Memory { return &r.m }

// Adopt takes over the memory of a rule of other options: server i was server servers[i]
// there, zone z was zones[z]; −1: it is new. What was learned of the load is dropped where
// the width of what it was learned over is another.
func (r *Rule) Adopt(old *Memory, servers, zones []int) {
	m := newMemory(&r.opts, r.zones)
	m.now, m.changed, m.want, m.quiet, m.level, m.pain, m.ceiling = old.now, old.changed, old.want, old.quiet, old.level, old.pain, old.ceiling
	for i, was := range servers {
		if was >= 0 {
			m.servers[i] = old.servers[was]
		}
	}
	same := len(zones) == len(old.zones)
	for z, was := range zones {
		if was >= 0 {
			m.zones[z] = old.zones[was]
		}
		same = same && was == z
	}
	if same && len(old.history) <= r.opts.Hold {
		m.history = old.history
	}
	if len(old.season.day) == len(m.season.day) && old.season.width == m.season.width {
		m.season = old.season
		m.season.dirty = true
	}
	r.m = m
}

// Code codes the memory whole.
func (m *Memory) Code(c *statecode.Coder) {
	m.codeSmall(c)
	usual := func(v *float64) {
		c.Finite(v)
		if c.Reads() && c.Err() == nil && !(*v >= -1 && *v <= mostLoad) {
			c.Fail("a usual load that isn't one")
		}
	}
	statecode.ListOrNil(c, &m.season.day, usual)
	statecode.ListOrNil(c, &m.season.week, usual)
	m.season.dirty = true
}

// Digest codes the memory for a digest: the means of a season by a digest of theirs.
func (m *Memory) Digest(c *statecode.Coder) {
	m.codeSmall(c)
	sum := m.season.sum256()
	text := hex.EncodeToString(sum[:])
	c.Text(&text)
}

func (m *Memory) codeSmall(c *statecode.Coder) {
	for _, v := range []*int64{&m.now, &m.changed, &m.want, &m.quiet} {
		c.Int(v)
	}
	c.Finite(&m.ceiling)
	c.Finite(&m.level)
	c.Finite(&m.pain)
	statecode.ListOrNil(c, &m.servers, func(s *serverMemory) {
		c.Int(&s.switched)
		c.Int(&s.failed)
	})
	statecode.ListOrNil(c, &m.zones, func(z *zoneMemory) {
		c.Finite(&z.service)
		c.Finite(&z.weight)
	})
	statecode.ListOrNil(c, &m.history, func(p *period) {
		c.Int(&p.at)
		c.Bool(&p.gauged)
		statecode.ListOrNil(c, &p.zones, func(l *Load) { codeLoad(c, l) })
	})
	codeSeason(c, &m.season)
	m.check(c)
}

func codeLoad(c *statecode.Coder, l *Load) {
	c.Int(&l.Requests)
	for _, v := range []*float64{&l.Service, &l.Penalty, &l.Queued, &l.InService, &l.Potential} {
		c.Finite(v)
	}
}

func codeSeason(c *statecode.Coder, s *season) {
	for _, v := range []*int64{&s.width, &s.part, &s.count} {
		c.Int(v)
	}
	for _, v := range []*float64{&s.sum, &s.level, &s.wrong, &s.wrongOfNone, &s.loads} {
		c.Finite(v)
	}
	statecode.ListOrNil(c, &s.ahead, func(f *foretold) {
		c.Int(&f.part)
		c.Finite(&f.forecast)
		c.Finite(&f.load)
	})
}

// check notes a fault of what was read.
func (m *Memory) check(c *statecode.Coder) {
	if !c.Reads() || c.Err() != nil {
		return
	}
	ok := m.ceiling > 0 && m.ceiling <= 1 && m.want >= 0 && m.want <= 4096 && m.quiet >= 0 && m.level >= -1 && m.level <= mostLoad && m.pain >= 0 && m.pain <= mostLoad
	for _, z := range m.zones {
		ok = ok && z.service >= 0 && z.service <= mostLoad && z.weight >= 0 && z.weight <= 1
	}
	last := noTime
	for i := range m.history {
		p := &m.history[i]
		ok = ok && p.at > last && p.at <= m.now && len(p.zones) == len(m.zones)
		last = p.at
		for z := range p.zones {
			ok = ok && p.zones[z].sane()
		}
	}
	s := &m.season
	ok = ok && s.width >= 0 && s.count >= 0 && s.part >= -1 && s.level >= 0 && s.level <= 2 && min(s.sum, s.wrong, s.wrongOfNone, s.loads) >= 0 &&
		max(s.sum, s.wrong, s.wrongOfNone, s.loads) <= mostLoad && len(s.ahead) <= mostAhead
	for _, f := range s.ahead {
		ok = ok && min(f.forecast, f.load) >= 0 && max(f.forecast, f.load) <= mostLoad
	}
	if !ok {
		c.Fail("a memory that isn't one")
	}
}

// mostLoad is beyond every load that can be, summed over a part of a day.
const mostLoad = 1e18

// sane says whether a load can be one.
func (l *Load) sane() bool {
	return l.Requests >= 0 && l.Requests <= 1<<50 && min(l.Service, l.Penalty, l.Queued, l.InService, l.Potential) >= 0 &&
		max(l.Service, l.Penalty, l.Queued, l.InService, l.Potential) <= mostLoad
}

// Fits says whether the memory is of so many servers and zones.
func (m *Memory) Fits(servers, zones int) bool {
	return len(m.servers) == servers && len(m.zones) == zones && (m.season.width > 0) == (len(m.season.day) > 0) && len(m.season.week) == days*len(m.season.day)
}
