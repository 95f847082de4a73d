package haproxy

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

// TestParseState reads lists of servers as versions from 1.7 on show them, whose
// columns grow in number, and refuses what is none.
func TestParseState(t *testing.T) {
	t.Parallel()
	const old = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change\n" +
		"3 app 1 a 127.0.0.1 2 0 7 100 12\n3 app 2 b 127.0.0.1 0 1 0 1 12\n\n"
	const other = "1\n# srv_name be_name srv_iweight srv_uweight srv_admin_state srv_op_state srv_more\nc web 1 256 8 1 -\n\n"
	want := []server{
		{backend: "app", name: "a", weight: 7, initial: 100, up: true},
		{backend: "app", name: "b", weight: 0, initial: 1, admin: 1},
		{backend: "web", name: "c", weight: 256, initial: 1, up: true, admin: 8},
	}
	got, err := parseState(old + other)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for i, usable := range []bool{true, false, false} {
		if got[i].usable() != usable {
			t.Errorf("%+v is usable: %v", got[i], !usable)
		}
	}
	if got, err := parseState("\n"); err != nil || len(got) != 0 {
		t.Errorf("of nothing %+v, %v", got, err)
	}
	for answer, want := range map[string]error{
		"Can't find backend.\n\n":                         shares.ErrAbsent,
		old + "Can't find backend.\n\n":                   shares.ErrAbsent,
		"Permission denied\n\n":                           ErrRefused,
		"Unknown command. Please enter one of: ...\n":     ErrFormat,
		"2\n# one two\n1 2\n":                             ErrFormat,
		strings.Replace(old, "srv_iweight", "renamed", 1): ErrFormat,
		strings.Replace(old, "be_name", "renamed", 1):     ErrFormat,
		strings.Replace(old, " 7 100", " x 100", 1):       ErrFormat,
		old[:len(old)-10]:                                 ErrFormat, // it breaks off
	} {
		if got, err := parseState(answer); !errors.Is(err, want) {
			t.Errorf("%q: %+v, %v, want %v", answer, got, err, want)
		}
	}
}

// TestParseTraffic reads statistics with and without what newer versions add.
func TestParseTraffic(t *testing.T) {
	t.Parallel()
	got, err := parseTraffic("# pxname,svname,qcur,qmax,scur,cookie,\napp,a,2,9,3,,\napp,b,,,0,\"x,y\",\n\n")
	if err != nil || len(got) != 2 || got["app/a"] != (traffic{running: 5}) || got["app/b"] != (traffic{sticky: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = parseTraffic("# pxname,svname,qcur,qmax,scur\napp,a,0,9,1\n")
	if err != nil || got["app/a"] != (traffic{running: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	for answer, want := range map[string]error{
		"Permission denied\n":                    ErrRefused,
		"# pxname,svname,qcur\napp,a,0\n":        ErrFormat,
		"# pxname,svname,qcur,scur\napp,a\n":     ErrFormat,
		"# pxname,svname,qcur,scur\napp,a,0,x\n": ErrFormat,
		"# pxname,svname,qcur,scur\n\"app\n":     ErrFormat,
	} {
		if got, err := parseTraffic(answer); !errors.Is(err, want) {
			t.Errorf("%q: %+v, %v, want %v", answer, got, err, want)
		}
	}
}

// FuzzAnswers has whatever HAProxy might say read without a crash.
func FuzzAnswers(f *testing.F) {
	f.Add("1\n# be_name srv_name srv_op_state srv_admin_state srv_uweight srv_iweight\napp a 2 0 7 100\n")
	f.Add("# pxname,svname,qcur,scur\napp,a,0,1\n")
	f.Fuzz(func(t *testing.T, answer string) {
		servers, err := parseState(answer)
		for _, s := range servers {
			if err == nil && (s.name == "" || s.backend == "") {
				t.Errorf("a server without a name in %q", answer)
			}
		}
		if all, err := parseTraffic(answer); err == nil && all == nil {
			t.Errorf("nothing and no error of %q", answer)
		}
	})
}

// TestWeights holds for any shares and servers: weights in range, shares met to
// their sum, none above 0 lost, and those that can't take requests beside the others.
func TestWeights(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Backend{Name: "b", Servers: map[string][]string{}}
		servers, split := map[string]*server{}, map[string]float64{}
		sum := 0.0
		for _, site := range routertest.Sites {
			for i := range rapid.IntRange(1, 4).Draw(t, "servers") {
				name := site + string(rune('a'+i))
				b.Servers[site] = append(b.Servers[site], name)
				servers[name] = &server{backend: "b", name: name, up: rapid.Bool().Draw(t, "up"), admin: rapid.SampledFrom([]int{0, 0, 1, 8}).Draw(t, "admin")}
			}
			split[site] = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.001, 1), rapid.Just(1e-7)).Draw(t, "share")
			sum += split[site]
		}
		weights, err := b.weights(split, servers)
		if sum == 0 {
			if !errors.Is(err, shares.ErrShares) {
				t.Fatalf("no shares: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range servers {
			s.weight = weights[name]
			if s.weight < 0 || s.weight > mostWeight {
				t.Fatalf("weights %v", weights)
			}
		}
		shown := b.shares(servers)
		for site, share := range split {
			if (shown[site] == 0) != (share == 0) {
				t.Fatalf("%v became %v", split, weights)
			}
			active := b.active(site, servers)
			// Each server is off by less than a unit of 256 or more, or has one instead
			// of nothing.
			if off := math.Abs(shown[site] - share/sum); off > float64(len(servers))/mostWeight {
				t.Fatalf("%v became %v: %s is off by %v", split, weights, site, off)
			}
			for _, name := range b.Servers[site] {
				if share > 0 && weights[name] == 0 {
					t.Fatalf("server %s of %v, active %d: no weight", name, split, len(active))
				}
			}
		}
	})
}

// TestOptions that can't work.
func TestOptions(t *testing.T) {
	t.Parallel()
	good := func() Options {
		return Options{Address: "/run/api", Backends: []Backend{{
			Name: "search", Link: routertest.Link, Servers: map[string][]string{"east": {"a", "b"}},
		}}}
	}
	for address, network := range map[string]string{"/run/api": "unix", "unix:api": "unix", "tcp:h:1": "tcp", "h:1": "tcp", "[::1]:1": "tcp"} {
		o := good()
		o.Address = address
		if target, err := New(o); err != nil || target.client.network != network {
			t.Errorf("%s: %v", address, err)
		}
	}
	for name, spoil := range map[string]func(o *Options){
		"no address":     func(o *Options) { o.Address = "" },
		"no backend":     func(o *Options) { o.Backends = nil },
		"a second line":  func(o *Options) { o.Backends[0].Name = "a\nset" },
		"a second word":  func(o *Options) { o.Backends[0].Servers["east"][0] = "a;quit" },
		"twice":          func(o *Options) { o.Backends = append(o.Backends, o.Backends[0]) },
		"a server twice": func(o *Options) { o.Backends[0].Servers["west"] = []string{"a"} },
		"no servers":     func(o *Options) { o.Backends[0].Servers["west"] = nil },
		"no link":        func(o *Options) { o.Backends[0].Link = shares.Link{} },
		"negative time":  func(o *Options) { o.Timeout = -1 },
	} {
		o := good()
		spoil(&o)
		if _, err := New(o); !errors.Is(err, router.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
