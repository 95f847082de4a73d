package demo

import (
	"bytes"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/stage"
)

//go:embed settings.yaml
var settingsText string

var settingsTemplate = template.Must(template.New("settings.yaml").Parse(settingsText))

// settings is what a configuration of the demonstration depends on.
type settings struct {
	Sites                       []siteSettings
	Policy                      string
	Window                      time.Duration
	Listen                      string // of an entry point
	Redirector                  string
	Telemetry                   string
	GeoIP, PeerKeyFile, UserKey string
}

// siteSettings is one site as one process sees it.
type siteSettings struct {
	Name, URL, Server, Store string
	Lat, Lon                 float64
}

// addresses are where everything listens.
type addresses struct {
	entries, services, telemetry []string // by site
	bus, serve                   string   // of serve: the bus, and telemetry
	redirector, redirectorState  string   // the redirector, and its telemetry
}

// count is how many addresses a world of n sites takes.
func (*addresses) count(n int) int { return 3*n + 4 }

// fill hands out addresses.
func (a *addresses) fill(list []string, n int) {
	a.entries, a.services, a.telemetry = list[:n], list[n:2*n], list[2*n:3*n]
	rest := list[3*n:]
	a.bus, a.serve, a.redirector, a.redirectorState = rest[0], rest[1], rest[2], rest[3]
}

// files are the configurations that were written.
type files struct {
	serve   string
	entries []string // by site
}

// write writes the configurations into a folder: each entry point sees the others'
// over the links, everybody else where they are.
func (l *Live) write(w *World, at *addresses, mesh *links.Mesh, rng *rand.Rand) (*files, error) {
	base := settings{
		Policy: l.Policy, Window: l.Window, Listen: at.entries[0], Redirector: at.redirector, Telemetry: at.serve,
		GeoIP: filepath.Join(l.Dir, "places"), PeerKeyFile: filepath.Join(l.Dir, "peer.key"), UserKey: stage.Secret(rng),
	}
	for i, r := range w.Regions {
		base.Sites = append(base.Sites, siteSettings{
			Name: r.Name, Lat: r.Lat, Lon: r.Lon, URL: "http://" + at.entries[i], Server: "http://" + at.services[i], Store: l.store(r.Name),
		})
	}
	if err := os.WriteFile(base.PeerKeyFile, []byte(stage.Secret(rng)), 0o600); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if err := writePlaces(base.GeoIP, w.Regions); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	f := &files{serve: filepath.Join(l.Dir, "penstock.yaml")}
	if err := stage.Configure(f.serve, settingsTemplate, &base); err != nil {
		return nil, err
	}
	for i, r := range w.Regions {
		own := base
		own.Listen, own.Telemetry = at.entries[i], at.telemetry[i]
		own.Sites = append([]siteSettings{}, base.Sites...)
		for j := range own.Sites {
			over, err := mesh.Address(r.Name, own.Sites[j].Name)
			if err != nil {
				return nil, fmt.Errorf("demo: %w", err)
			}
			own.Sites[j].URL = "http://" + over
		}
		name := filepath.Join(l.Dir, "entry-"+r.Name+".yaml")
		if err := stage.Configure(name, settingsTemplate, &own); err != nil {
			return nil, err
		}
		f.entries = append(f.entries, name)
	}
	return f, nil
}

// writePlaces writes the table by which entry points know where people are.
func writePlaces(dir string, regions []Region) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var ranges, places bytes.Buffer
	fmt.Fprintln(&places, "cca2,lat,lon")
	for _, r := range regions {
		fmt.Fprintf(&ranges, "%s.0,%s.255,%s\n", r.Network, r.Network, r.Country)
		fmt.Fprintf(&places, "%s,%g,%g\n", r.Country, r.Lat, r.Lon)
	}
	if err := os.WriteFile(filepath.Join(dir, "demo-country-ipv4.csv"), ranges.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "country_latlng.csv"), places.Bytes(), 0o644)
}

// store is the folder of a site's store.
func (l *Live) store(site string) string { return filepath.Join(l.Dir, "stores", site) }
