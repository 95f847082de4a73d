package servers

import (
	"encoding/json"
	"io"

	"penstock/consumers/decider/servers/switching"
	"penstock/consumers/decider/standing"
	"penstock/consumers/decider/statecode"
	"penstock/schemas/control"
)

// format is that of snapshots, with its version.
var format = statecode.Format{Magic: "penstock/servers/1\n", Fault: ErrSnapshot}

func codeServer(c *statecode.Coder, x *server) {
	c.Bool(&x.wanted)
	s := int64(x.state)
	c.Int(&s)
	if x.state = switching.State(s); c.Err() == nil && (s < int64(switching.Off) || s > int64(switching.Failed)) {
		c.Fail("a state of a server that isn't one")
	}
	c.Int(&x.since)
	c.Int(&x.gauged)
	for _, v := range []*float64{&x.queued, &x.inService, &x.potential} {
		c.Finite(v)
		if c.Err() == nil && !(*v >= 0 && *v <= mostQueued) {
			c.Fail("a queue that isn't one")
		}
	}
}

// mostQueued is beyond every queue and its penalty that gauges can tell of.
const mostQueued = 1e15

func codeStanding(c *statecode.Coder, s *standing.Standing) {
	for _, p := range []*uint64{&s.Epoch, &s.Done, &s.Bad} {
		c.Uint(p)
	}
	c.Text(&s.Refused)
	c.Number(&s.Failed)
}

// newPast makes a past of a table, with its canonical JSON: floats come back as they were.
func newPast(window int64, table *control.ServersTable) past {
	body, err := control.Encode(control.Command{Servers: table})
	if err != nil {
		// Names come from a configuration in JSON and weights are finite: it cannot fail.
		panic("servers: " + err.Error())
	}
	return past{window: window, table: table, text: string(body)}
}

func codeTable(c *statecode.Coder, p *past) {
	c.Int(&p.window)
	c.Text(&p.text)
	if !c.Reads() || c.Err() != nil {
		return
	}
	var m control.Command
	if err := json.Unmarshal([]byte(p.text), &m); err != nil || m.Servers == nil {
		c.Fail("a table that isn't one")
		return
	}
	if p.table = m.Servers; newPast(p.window, p.table).text != p.text {
		c.Fail("a table that isn't one")
	}
}

// codeSite codes a site, its rule's memory by memory.
func codeSite(c *statecode.Coder, s *site, memory func(*switching.Memory, *statecode.Coder)) {
	for _, v := range []*int64{&s.seen, &s.known, &s.sent} {
		c.Int(v)
	}
	c.Bool(&s.expired)
	statecode.ListOrNil(c, &s.servers, func(x *server) { codeServer(c, x) })
	c.Finite(&s.pace)
	if c.Err() == nil && !(s.pace >= 0 && s.pace <= mostQueued) {
		c.Fail("a pace that isn't one")
	}
	c.Text(&s.last)
	codeStanding(c, &s.served)
	codeStanding(c, &s.switched)
	statecode.ListOrNil(c, &s.advice, func(p *past) { codeTable(c, p) })
	statecode.ListOrNil(c, &s.tables, func(p *past) { codeTable(c, p) })
	if s.memory == nil {
		s.memory = new(switching.Memory)
	}
	memory(s.memory, c)
}

func codeState(c *statecode.Coder, s *state, memory func(*switching.Memory, *statecode.Coder)) {
	c.Int(&s.now)
	statecode.ListOrNil(c, &s.sites, func(x *site) { codeSite(c, x, memory) })
}

// named is a site with its zones and servers, as a state's places stand for them.
type named struct {
	site           string
	zones, servers []string
}

func codeNames(c *statecode.Coder, names *[]named) {
	statecode.ListOrNil(c, names, func(n *named) {
		c.Text(&n.site)
		statecode.ListOrNil(c, &n.zones, c.Text)
		statecode.ListOrNil(c, &n.servers, c.Text)
	})
}

func (t *Policy) named() []named {
	out := make([]named, len(t.config.Sites))
	for i := range t.config.Sites {
		x := &t.config.Sites[i]
		out[i] = named{site: x.Name, servers: t.names[i]}
		for _, z := range x.Zones {
			out[i].zones = append(out[i].zones, z.Name)
		}
	}
	return out
}

// Snapshot writes the state: equal states have equal bytes.
func (t *Policy) Snapshot(w io.Writer) error {
	c := format.Write()
	width := t.config.Window.Microseconds()
	c.Int(&width)
	names := t.named()
	codeNames(c, &names)
	codeState(c, t.state, (*switching.Memory).Code)
	return c.Seal(w)
}

// Restore replaces the state by one that was written, of this configuration or of an
// earlier one: sites, zones and servers are found by name, those that are gone are left
// out, new ones are as at first, and after a change of the window's width the rules begin
// anew. The error wraps ErrSnapshot.
func (t *Policy) Restore(r io.Reader) error {
	c, err := format.Read(r)
	if err != nil {
		return err
	}
	var width int64
	var names []named
	c.Int(&width)
	codeNames(c, &names)
	s := new(state)
	codeState(c, s, (*switching.Memory).Code)
	if c.Err() == nil && (c.Left() > 0 || !s.fits(names)) {
		c.Fail("its parts do not fit")
	}
	if c.Err() != nil {
		return c.Err()
	}
	return t.adopt(s, names, width == t.config.Window.Microseconds())
}

// fits says whether a state has a place for each name.
func (s *state) fits(names []named) bool {
	if len(names) != len(s.sites) {
		return false
	}
	for i := range names {
		if x := &s.sites[i]; len(x.servers) != len(names[i].servers) || !x.memory.Fits(len(names[i].servers), len(names[i].zones)) {
			return false
		}
	}
	return true
}

// adopt takes over a state, made to fit this configuration.
func (t *Policy) adopt(old *state, names []named, sameWidth bool) error {
	first, err := New(t.config)
	if err != nil {
		return err
	}
	t.rules, t.state = first.rules, first.state
	t.state.now = old.now
	now := t.named()
	for j := range names {
		i, ok := t.index[names[j].site]
		if !ok {
			continue
		}
		servers, zones := placed(now[i].servers, names[j].servers), placed(now[i].zones, names[j].zones)
		was, is := old.sites[j], &t.state.sites[i]
		list, memory := is.servers, is.memory
		*is = was
		is.servers, is.memory = list, memory
		for k, at := range servers {
			if at >= 0 {
				is.servers[k] = was.servers[at]
			}
		}
		if sameWidth {
			t.rules[i].Adopt(was.memory, servers, zones)
		}
	}
	return nil
}

// placed says where each of the names was, −1 where it was not.
func placed(now, before []string) []int {
	at := make(map[string]int, len(before))
	for i, n := range before {
		at[n] = i
	}
	out := make([]int, len(now))
	for i, n := range now {
		out[i] = -1
		if p, ok := at[n]; ok {
			out[i] = p
		}
	}
	return out
}

// Digest returns "sha256:" and the digest of the state.
func (t *Policy) Digest() string {
	return statecode.Digest(func(c *statecode.Coder) { codeState(c, t.state, (*switching.Memory).Digest) })
}
