package split

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	policies "penstock/consumers/decider/split"
	"penstock/pipeline/config"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/services"
)

func TestConfigurationsHaveNoFaults(t *testing.T) {
	var list []string
	for i := range addressesOf(len(places)) {
		list = append(list, fmt.Sprintf("127.0.0.1:%d", 21_000+i))
	}
	var at addresses
	at.fill(list, len(places))
	s := &show{Demo: &Demo{Dir: t.TempDir(), Logger: zerolog.Nop()}, sites: places}
	for _, policy := range policies.Policies {
		w, err := s.build(policy, at)
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		f, err := w.write(seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range append([]string{f.serve}, f.entries...) {
			cfg, err := config.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Split.Policy != policy || len(cfg.Components) != len(services.Components) || len(cfg.SitesOf("ledger")) != 2 || len(cfg.SitesOf(services.Front)) != 2 {
				t.Errorf("%s: %+v, %+v", name, cfg.Split, cfg.Components)
			}
			if cfg.Split.Window.Std() != width || !cfg.Split.Cooldown.Auto {
				t.Errorf("%s: not as by default: %+v", name, cfg.Split)
			}
			// The other site is over the link, the own one where it is.
			if i > 0 && (cfg.Sites[i-1].URL != "http://"+at.sites[i-1].public || cfg.Sites[2-i].URL == "http://"+at.sites[2-i].public) {
				t.Errorf("%s: %s, %s", name, cfg.Sites[0].URL, cfg.Sites[1].URL)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, d := range map[string]Demo{
		"policy \"best\"":    {Policies: []string{"greedy", "best"}},
		"different ones":     {Policies: []string{"greedy", "greedy"}},
		"component \"moon\"": {Component: "moon"},
		"component \"web\"":  {Component: "web"},
		"site \"moon\"":      {Site: "moon"},
		"at least 50s":       {Fault: 49 * time.Second},
		"a fault or more":    {Faults: -1},
		"something else":     {Dir: dir},
	} {
		if d.Dir == "" {
			d.Dir = filepath.Join(dir, "new")
		}
		if _, err := d.Run(t.Context()); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	d := Demo{Dir: filepath.Join(dir, "own"), Fast: true, RTT: 80 * time.Millisecond}
	if err := d.complete(); err != nil || d.Policies[0] != "greedy" || d.Component != "quotes" || d.Site != "us-east" || d.durations().phase != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if got := d.roundTrip(places[0], places[1]); got != 80*time.Millisecond || d.roundTrip(places[0], places[0]) != 0 {
		t.Errorf("a round trip of %v", got)
	}
	if d.RTT = 0; d.roundTrip(places[0], places[1]) != links.Between(places[0], places[1]) {
		t.Error("distance does not say how long the way is")
	}
}

func TestUsage(t *testing.T) {
	used := time.Duration(0)
	m := &meter{groups: func() (time.Duration, error) { return used, nil }}
	a := m.set(t0)
	used += 3 * time.Second
	b := m.set(t0.Add(10 * time.Second))
	if m.err != nil && runtime.GOOS == "linux" {
		t.Fatal(m.err)
	}
	if m.err != nil {
		t.Skip("only Linux shows the processor times of others")
	}
	u := m.between("a fault", a, b)
	m.marks[b].ours, m.marks[b].machine = m.marks[a].ours, m.marks[a].machine
	if none := m.between("nothing", a, b); none.Ours != 0 || none.Machine != 0 || none.Seconds != 10 {
		t.Errorf("%+v", none)
	}
	if u.Ours*10*float64(processors) < 3 || u.Ours*10*float64(processors) > 6 || math.IsNaN(u.Machine) {
		t.Errorf("%+v of %d processors", u, processors)
	}
	broken := errors.New("no")
	m = &meter{groups: func() (time.Duration, error) { return 0, broken }}
	if m.set(t0); !errors.Is(m.err, broken) {
		t.Error(m.err)
	}
}
