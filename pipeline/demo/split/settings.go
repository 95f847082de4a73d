package split

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/template"

	"penstock/pipeline/demo/services"
	"penstock/pipeline/demo/stage"
)

//go:embed settings.yaml
var settingsText string

var settingsTemplate = template.Must(template.New("settings.yaml").Parse(settingsText))

// settings is what a configuration of a world depends on.
type settings struct {
	Sites                       []siteSettings
	Components                  []string
	Front, Policy               string
	Listen, Internal, Telemetry string
	PeerKeyFile, UserKey        string
}

// siteSettings is one site as one process sees it.
type siteSettings struct {
	Name, URL string
	Lat, Lon  float64
	Servers   map[string]string // by component
}

// addresses are where everything of a world listens.
type addresses struct {
	sites      []siteAddresses
	bus, serve string // of serve: the bus, and telemetry
}

// siteAddresses are those of a site.
type siteAddresses struct {
	public, internal, telemetry string            // of the entry point
	services, control           map[string]string // by component
}

// addressesOf is how many addresses a world of n sites takes.
func addressesOf(n int) int { return n*(3+2*len(services.Components)) + 2 }

// fill hands out addresses.
func (a *addresses) fill(list []string, sites int) {
	next := func() string {
		x := list[0]
		list = list[1:]
		return x
	}
	for range sites {
		s := siteAddresses{public: next(), internal: next(), telemetry: next(), services: map[string]string{}, control: map[string]string{}}
		for _, c := range services.Components {
			s.services[c.Name], s.control[c.Name] = next(), next()
		}
		a.sites = append(a.sites, s)
	}
	a.bus, a.serve = next(), next()
}

// files are the configurations that were written.
type files struct {
	serve   string
	entries []string // by site
}

// write writes the configurations of a world: each entry point sees the other over
// the link, everybody else where it is.
func (w *world) write(rng *rand.Rand) (*files, error) {
	base := settings{
		Front: services.Front, Policy: w.policy, Telemetry: w.at.serve, Listen: w.at.sites[0].public, Internal: w.at.sites[0].internal,
		PeerKeyFile: filepath.Join(w.dir, "peer.key"), UserKey: stage.Secret(rng),
	}
	for _, c := range services.Components {
		base.Components = append(base.Components, c.Name)
	}
	for i, s := range w.show.sites {
		at := &w.at.sites[i]
		own := siteSettings{Name: s.Name, Lat: s.Lat, Lon: s.Lon, URL: "http://" + at.public, Servers: map[string]string{}}
		for name, address := range at.services {
			own.Servers[name] = "http://" + address
		}
		base.Sites = append(base.Sites, own)
	}
	if err := os.WriteFile(base.PeerKeyFile, []byte(stage.Secret(rng)), 0o600); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	f := &files{serve: filepath.Join(w.dir, "penstock.yaml")}
	if err := stage.Configure(f.serve, settingsTemplate, &base); err != nil {
		return nil, err
	}
	for i, s := range w.show.sites {
		own, at := base, &w.at.sites[i]
		own.Listen, own.Internal, own.Telemetry = at.public, at.internal, at.telemetry
		own.Sites = append([]siteSettings{}, base.Sites...)
		for j := range own.Sites {
			over, err := w.mesh.Address(s.Name, own.Sites[j].Name)
			if err != nil {
				return nil, fmt.Errorf("demo: %w", err)
			}
			own.Sites[j].URL = "http://" + over
		}
		name := filepath.Join(w.dir, "entry-"+s.Name+".yaml")
		if err := stage.Configure(name, settingsTemplate, &own); err != nil {
			return nil, err
		}
		f.entries = append(f.entries, name)
	}
	return f, nil
}
