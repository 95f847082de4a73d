package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestBadFilesNameEachFault(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("the corpus has %d files (%v)", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(f, ".yaml") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := Read(filepath.Base(f), content)
			if cfg != nil || !errors.Is(err, ErrFaults) {
				t.Fatalf("got %v, %v; expected faults and no configuration", cfg, err)
			}
			if got := err.Error(); got != strings.TrimSpace(string(want)) {
				t.Errorf("got\n%s\nexpected\n%s", got, want)
			}
		})
	}
}

func TestGoodFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	examples, _ := filepath.Glob("../../infra/examples/*.yaml")
	for _, f := range append(files, examples...) {
		if filepath.Base(f) == "paper-day.yaml" {
			continue // parameters of a workload, not a configuration
		}
		if _, err := Load(f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestDefaultDocumentSaysTheDefaults(t *testing.T) {
	got, err := Read("default.yaml", []byte(DefaultYAML()))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Sites = got.Sites
	normalise := func(c *Config) {
		c.Servers.Zones, c.Servers.Switching.Hooks = nil, nil
		c.Residency, c.Servers.Classes, c.Prices.Egress, c.Stores.Postgres.Tables = nil, nil, nil, nil
		c.Entry.Class, c.Entry.TrustedProxies = nil, nil
		c.Router.HAProxy, c.Router.XDS, c.Router.Gateway = nil, nil, nil
		sp := &c.Spans
		sp.Peers, sp.Component, sp.Site, sp.Server, sp.Callee, sp.Class, sp.Owner, sp.Sites = nil, nil, nil, nil, nil, nil, nil, nil
		c.Coders, c.Components, c.Split.Colocate, c.Split.Residency, c.Split.Links = nil, nil, nil, nil, nil
	}
	normalise(got)
	normalise(&want)
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("the printed document has\n%+v\nthe defaults are\n%+v", *got, want)
	}
	for _, section := range []reflect.Type{reflect.TypeFor[Placement](), reflect.TypeFor[Split](), reflect.TypeFor[Entry](), reflect.TypeFor[Redirector](), reflect.TypeFor[Router](), reflect.TypeFor[Spans](), reflect.TypeFor[Coding](), reflect.TypeFor[Servers]()} {
		for _, name := range fieldNames(section) {
			if !strings.Contains(DefaultYAML(), "\n  "+name+":") {
				t.Errorf("%s of %s is not in the printed document", name, section.Name())
			}
		}
	}
}

func TestUnits(t *testing.T) {
	r, err := parseRate("117MB/h")
	if err != nil || r.In(time.Hour) != 117_000_000 {
		t.Errorf("117MB/h is %d B an hour, %v", r.In(time.Hour), err)
	}
	if r, _ := parseRate("5MB/s"); r.In(time.Second) != 5_000_000 || r.PerSecond() != 5e6 {
		t.Errorf("5MB/s is %d B a second", r.In(time.Second))
	}
	for s, want := range map[string]int64{"512": 512, "1.5KB": 1500, "10 GB": 1e10, "0": 0} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v; expected %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "MB", "-1MB", "1XB", "NaN", "1e300GB"} {
		if got, err := parseSize(s); err == nil {
			t.Errorf("%q: %d; expected an error", s, got)
		}
	}
	if got := Duration(90*time.Minute).String() + " " + Duration(24*time.Hour).String() + " " + Duration(time.Minute).String(); got != "1h30m 24h 1m" {
		t.Errorf("durations print as %s", got)
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cfg, err := Read("fuzz.yaml", b)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("configuration %v with error %v", cfg, err)
		}
	})
}

func TestCooldownFollowsThePolicyUnlessItIsSet(t *testing.T) {
	site := "sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]\n"
	for text, want := range map[string][2]time.Duration{ // under tmatch, under optimal
		"":                              {0, 3 * time.Hour},
		"placement: {cooldown: auto}\n": {0, 3 * time.Hour},
		"placement: {cooldown: 0s}\n":   {0, 0},
		"placement: {cooldown: 90m}\n":  {90 * time.Minute, 90 * time.Minute},
	} {
		c, err := Read("x.yaml", []byte(site+text))
		if err != nil {
			t.Fatal(err)
		}
		if p := c.Placement; p.CooldownOf("tmatch") != want[0] || p.CooldownOf("optimal") != want[1] {
			t.Errorf("%q: %v, %v", text, p.CooldownOf("tmatch"), p.CooldownOf("optimal"))
		}
	}
	if _, err := Read("x.yaml", []byte(site+"placement: {cooldown: never}\n")); err == nil || !strings.Contains(err.Error(), "or auto") {
		t.Errorf("never: %v", err)
	}
}

func TestNotesOnEntryPointsThatCannotKnowEachOther(t *testing.T) {
	sites := "sites:\n- {name: a, lat: 1, lon: 2, capacity: 1MB/h, url: \"http://a.example\", servers: [%q]}\n- {name: b, lat: 1, lon: 2, capacity: 1MB/h, url: \"http://b.example/\"}\n"
	for text, want := range map[string]string{
		fmt.Sprintf(sites, "http://s:1"):                                         "can't know each other",
		fmt.Sprintf(sites, "http://s:1") + "privacy: {user_key: x}\n":            "",
		fmt.Sprintf(sites, "http://s:1") + "entry: {peer_key_file: k}\n":         "",
		fmt.Sprintf(sites, "http://b.example") + "privacy: {user_key: x}\n":      "requests go in circles",
		"sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h, url: \"http://a\"}]": "",
	} {
		c, err := Read("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Notes(), "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: notes %q, expected %q", text, got, want)
		}
	}
}

// TestNotesOnAnInternalListenerOffLoopback: nothing but the network keeps strangers
// from calling what isn't public there.
func TestNotesOnAnInternalListenerOffLoopback(t *testing.T) {
	site := "sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]\n"
	for internal, noted := range map[string]bool{
		"": false, "127.0.0.1:8081": false, "localhost:8081": false, "[::1]:8081": false,
		"10.0.0.1:8081": true, ":8081": true, "0.0.0.0:8081": true, "[::]:8081": true,
	} {
		c, err := Read("x.yaml", fmt.Appendf(nil, "%sentry: {internal: %q}\n", site, internal))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Notes(), "\n"); strings.Contains(got, "off loopback") != noted {
			t.Errorf("%q: notes %q", internal, got)
		}
	}
}

// TestNotesOnACapBelowOneRead: the price of one request is the least that a read costs.
func TestNotesOnACapBelowOneRead(t *testing.T) {
	site := "sites: [{name: a, lat: 1, lon: 2, capacity: 1MB/h}]\n"
	coder := "coders: [{name: objects, site: a, listen: \"127.0.0.1:9200\", keys_file: keys, stores: [{name: x, url: \"dir:x\"}]}]\n"
	for text, noted := range map[string]bool{
		coder: false, coder + "coding: {max_read_price: 0.39}\n": true, coder + "coding: {max_read_price: 0.4}\n": false,
		coder + "coding: {max_read_price: 0.4}\nprices: {store_reads: 0.5}\n": true, coder + "coding: {max_read_price: 0.1}\nprices: {store_reads: 0}\n": false,
		"coding: {max_read_price: 0.1}\n": false,
	} {
		c, err := Read("x.yaml", []byte(site+text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Notes(), "\n"); strings.Contains(got, "one read at (1,1) costs more than max_read_price: the cap is 1") != noted {
			t.Errorf("%q: notes %q", text, got)
		}
	}
}

func TestSizesPrintAsTheyAreWritten(t *testing.T) {
	for n, want := range map[Size]string{0: "0", 10: "10B", 1000: "1KB", 64_000_000: "64MB", 1_500_000: "1500KB", 2_000_000_000_000: "2TB"} {
		if got := n.String(); got != want {
			t.Errorf("%d: got %s, expected %s", n, got, want)
		}
	}
}

// TestTheSplitPage: what docs/split.md shows is a configuration.
func TestTheSplitPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/split.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page shows no configuration")
	}
	if _, err := Read("docs/split.md", []byte(text)); !errors.Is(err, ErrFaults) {
		t.Fatalf("a key that is still to be written is none: %v", err)
	}
	cfg, err := Read("docs/split.md", []byte(strings.Replace(text, `"…"`, `"a key of ours"`, 1)))
	if err != nil || !cfg.Splits() {
		t.Fatalf("%v", err)
	}
}

// TestNotesOnServers that nothing steers, or that nothing turns off.
func TestNotesOnServers(t *testing.T) {
	sites := "sites:\n- {name: a, lat: 1, lon: 2, capacity: 1MB/h, servers: [\"http://127.0.0.1:1\"]}\n"
	for servers, want := range map[string]string{
		"servers: {policy: A2}\n": "servers steers nothing: there are no classes",
		"servers: {classes: {other: {t_max: 1s, penalty: 1}}, switching: {policy: penalty}}\n":                                                       "there are no hooks",
		"servers: {classes: {other: {t_max: 1s, penalty: 1}}, switching: {hooks: [{kind: none}]}}\n":                                                 "hooks do nothing",
		"servers: {ramp: 10s, classes: {other: {t_max: 1s, penalty: 1}}, switching: {policy: penalty, cooldown: 5s}}\n":                              "cooldown 5s is shorter than servers.ramp 10s",
		"servers: {classes: {gold: {t_max: 1s, penalty: 1}}}\n":                                                                                      "classes.gold: no rule of entry.class",
		"servers: {classes: {gold: {t_max: 1s, penalty: 1}}}\nentry: {class: [{path: \"/gold/**\", class: gold}]}\n":                                 "",
		"servers: {classes: {gold: {t_max: 1s, penalty: 1}}}\nentry: {class: [{path: \"/x/**\", class: gold}, {path: \"/gold/**\", class: golt}]}\n": "servers.classes has no golt",
	} {
		c, err := Read("c.yaml", []byte(sites+servers))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Notes(), "\n"); want == "" && strings.Contains(got, "servers") || !strings.Contains(got, want) {
			t.Errorf("%s: notes %q, want %q", servers, got, want)
		}
	}
}

// TestZones: servers that no zone lists are one of the site's own name.
func TestZones(t *testing.T) {
	c, err := Load("testdata/good/servers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []ServerZone{{"us-east-a", []string{"127.0.0.1:9101"}}, {"us-east", []string{"127.0.0.1:9102"}}}
	if got := c.ZonesOf("us-east"); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if !c.Servers.IsStatic("static") || c.Servers.IsStatic(OtherClass) || c.ZonesOf("mars") != nil {
		t.Error("kinds of classes")
	}
}
