package serverswitch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"penstock/schemas/control"
)

// entries are entry points of which each goes by a table, some time after the switch does:
// new requests go to servers that are on in it.
type entries struct {
	mu     sync.Mutex
	epochs []uint64
	tables []*control.ServersTable
}

func (e *entries) drained(m *machines) func(site, server string, epoch uint64) (bool, string) {
	return func(site, server string, epoch uint64) (bool, string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for i, have := range e.epochs {
			if have != epoch {
				return false, fmt.Sprintf("entry %d goes by table %d", i, have)
			}
		}
		return m.drained(site, server, epoch)
	}
}

// TestChaos: tables in quick succession, some that come again, hooks that fail, requests
// that come and go, entry points that are late, restarts. No server is stopped while it has requests,
// never are all off, and what the last table wants is so in the end.
func TestChaos(t *testing.T) {
	t.Parallel()
	seeds, rounds := 4, 300
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		seeds, rounds = 100, 2000
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chaos(t, rand.New(rand.NewPCG(uint64(seed), 7)), rounds)
		})
	}
}

func chaos(t *testing.T, chance *rand.Rand, rounds int) {
	names := []string{"a", "b", "c", "d", "e"}
	m := newMachines("a", "b")
	m.blind = chance.IntN(2) == 0
	go func() { // nobody listens to the calls
		for range m.called { // they are only taken
		}
	}()
	defer close(m.called)
	e := &entries{epochs: make([]uint64, 2), tables: make([]*control.ServersTable, 2)}
	g := open(t, m, strings.Join(names, " "), func(o *Options) { o.Drained = e.drained(m) }).run()
	last := table(1, "a b/c d e")
	var waiting []<-chan error
	epoch := uint64(0)
	for range rounds {
		switch server := names[chance.IntN(len(names))]; chance.IntN(8) {
		case 0, 1: // a later table
			epoch++
			chance.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			n := 1 + chance.IntN(len(names))
			last = table(epoch, strings.Join(names[:n], " ")+"/"+strings.Join(names[n:], " "))
			waiting = append(waiting, g.send(epoch, strings.Join(names[:n], " ")+"/"+strings.Join(names[n:], " ")))
		case 2: // an entry point gets the table
			i := chance.IntN(len(e.epochs))
			e.mu.Lock()
			e.epochs[i], e.tables[i] = epoch, last.Servers
			e.mu.Unlock()
		case 3, 4: // a request begins, where it may
			g.request(e, chance.IntN(len(e.epochs)), server)
		case 5:
			m.edit(func() { m.running[server] = 0 })
		case 6:
			m.edit(func() { m.fail[[]string{"on ", "off "}[chance.IntN(2)]+server] = chance.IntN(8) })
		case 7:
			if chance.IntN(6) == 0 { // and a restart
				g.end()
				for _, done := range waiting {
					_ = wait1(t, done)
				}
				waiting = nil
				g.begin()
				g.run()
			}
		}
	}
	epoch++
	m.edit(func() { clear(m.fail); clear(m.running) })
	on := strings.Join(last.Servers.On, " ")
	done := g.send(epoch, on+"/"+strings.Join(last.Servers.Off, " "))
	e.mu.Lock()
	e.epochs = []uint64{epoch, epoch}
	e.mu.Unlock()
	g.until("as the last table wants it", func(s *site) bool { v := s.judge(); return v.settled && len(v.failed) == 0 })
	if err := wait1(t, done); err != nil {
		t.Fatal(err)
	}
	for _, done := range waiting {
		_ = wait1(t, done)
	}
	g.stop()
	m.edit(func() {
		if len(m.wrong) > 0 {
			t.Errorf("%q", m.wrong)
		}
		for _, name := range names {
			if wanted := strings.Contains(on, name); m.on[name] != wanted {
				t.Errorf("%s is on: %v, wanted %v", name, m.on[name], wanted)
			}
		}
	})
}

// request begins one at a server that is on, if the entry point's table has it.
func (g *world) request(e *entries, entry int, server string) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tables[entry]; t != nil && strings.Contains(strings.Join(t.On, " "), server) && g.w.sites[site1].unitOf(server).memo.Phase == On {
		g.m.edit(func() { g.m.running[server]++ })
	}
}
