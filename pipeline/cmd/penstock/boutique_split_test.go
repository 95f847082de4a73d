package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"penstock/schemas/control"
)

// left is a share that a table takes from a site.
type left struct {
	window         time.Time
	from, fromSite string
	to, site       string
	before, after  float64
}

// replayed are the decisions of a replay of calls, and what its tables take from
// sites. Where there was no table, calls stayed at their site.
func (b *boutique) replayed(name string, calls [][]string) (lost []left, decisions []control.Decision) {
	b.t.Helper()
	rec := b.write(name+".csv", append([][]string{b.head}, calls...))
	out := filepath.Join(b.dir, name)
	must(b.t, "replay", rec, "--config", b.config, "--out", out)
	type row struct{ from, fromSite, to string }
	force := map[row]map[string]float64{}
	for _, c := range bodies[control.Command](b.t, out, "commands.jsonl") {
		for _, r := range c.Split.Table {
			k, now := row{c.Scope, r.FromSite, r.To}, map[string]float64{}
			for _, x := range r.Ratios {
				now[x.Site] = x.Share
			}
			was := force[k]
			if was == nil {
				was = map[string]float64{r.FromSite: 1}
			}
			for _, site := range slices.Sorted(maps.Keys(was)) {
				if now[site] < was[site] {
					lost = append(lost, left{c.Window.Start, c.Scope, r.FromSite, r.To, site, was[site], now[site]})
				}
			}
			force[k] = now
		}
	}
	return lost, slices.DeleteFunc(bodies[control.Decision](b.t, out, "decisions.jsonl"), func(d control.Decision) bool { return d.Kind != control.Split })
}

// callees are those that calls of us-east leave at us-east while the fault lasts.
func callees(lost []left) map[string]bool {
	out := map[string]bool{}
	for _, l := range lost {
		if !l.window.Before(faultAt.Truncate(10*time.Second)) && l.to != "frontend" && l.fromSite == "us-east" && l.site == "us-east" {
			out[l.to] = true
		}
	}
	return out
}

// The frontend's processor is taken from it: it waits longer for all it calls, and its
// callees are as fast as ever. No command moves calls away from one of them; requests
// are moved away from the frontend. By the command lines that a user has.
func TestASlowFrontendIsNotItsCallees(t *testing.T) {
	t.Parallel()
	b := newBoutique(t)
	lost, decisions := b.replayed("recorded", b.calls)
	share := 1.0
	for _, l := range lost {
		t.Logf("%s %s at %s to %s: %s has %.2f, had %.2f", l.window.Format(time.TimeOnly), l.from, l.fromSite, l.to, l.site, l.after, l.before)
		switch {
		case l.window.Before(faultAt.Truncate(10 * time.Second)):
		case l.to == "frontend" && l.fromSite == "us-east":
			share = l.after
		case l.site == l.fromSite:
			// What had gone elsewhere before the fault may come back.
			t.Errorf("calls are moved away from %s at %s", l.to, l.site)
		}
	}
	if share > 0.5 {
		t.Errorf("the slow frontend still has %.2f of its requests", share)
	}
	// The minute of the third file: 03:54:19 to 03:55:19.
	blamed := 0
	for _, d := range decisions {
		if d.Window.Start.Before(faultAt.Add(16*time.Second)) || d.Window.Start.After(faultAt.Add(76*time.Second)) {
			continue
		}
		for _, r := range d.Reasons {
			if r.Code == "CallerSlow" && r.Scope == "frontend" && r.Evidence["from_site"] == "us-east" {
				blamed++
				t.Logf("%s %s", d.Window.Start.Format(time.TimeOnly), r.Text)
			}
		}
	}
	if blamed != 7 {
		t.Errorf("the caller is named in %d windows of the minute, expected 7", blamed)
	}

	t.Run("were the callees as slow, calls would leave them", func(t *testing.T) {
		network, service := b.column("network_us"), b.column("service_us")
		usual := map[string][]int64{}
		for _, c := range b.calls {
			if c[b.column("from_component")] == "frontend" && c[b.column("from_site")] == "us-east" && !b.isSlow(c) {
				usual[c[b.column("to_component")]] = append(usual[c[b.column("to_component")]], number(t, c[network]))
			}
		}
		for _, v := range usual {
			slices.Sort(v)
		}
		var calls [][]string
		for _, c := range b.calls {
			if b.isSlow(c) {
				v := usual[c[b.column("to_component")]]
				if over := number(t, c[network]) - v[len(v)/2]; over > 0 {
					c = slices.Clone(c)
					c[network] = strconv.FormatInt(number(t, c[network])-over, 10)
					c[service] = strconv.FormatInt(number(t, c[service])+over, 10)
				}
			}
			calls = append(calls, c)
		}
		lost, _ := b.replayed("callees", calls)
		if got := callees(lost); len(got) < 4 {
			t.Errorf("calls leave %v alone", got)
		}
	})

	t.Run("were the caller not to blame, calls would leave them", func(t *testing.T) {
		// The frontend calls three more, as often as it is asked, and they answer at
		// once: so it is not the caller that is slow, though all else is as recorded.
		var calls [][]string
		for _, c := range b.calls {
			if calls = append(calls, c); c[b.column("from_component")] != "" {
				continue
			}
			for _, to := range []string{"quick-1", "quick-2", "quick-3"} {
				more := slices.Clone(c)
				more[b.column("from_component")], more[b.column("to_component")], more[b.column("to_server")] = "frontend", to, to
				more[b.column("service_us")], more[b.column("network_us")] = "1000", "1000"
				calls = append(calls, more)
			}
		}
		lost, _ := b.replayed("quick", calls)
		if got := callees(lost); len(got) < 4 {
			t.Errorf("calls leave %v alone", got)
		}
	})
}
