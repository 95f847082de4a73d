package servers

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/template"
	"time"

	"penstock/pipeline/demo/stage"
)

//go:embed settings.yaml
var settingsText string

var settingsTemplate = template.Must(template.New("settings.yaml").Parse(settingsText))

// settings is what a configuration depends on.
type settings struct {
	Sites                       []siteSettings
	Dispatches                  bool
	Policy                      string
	Workers, Initial            int
	Cost, Critical              float64
	Classes                     []Class
	Ramp                        time.Duration
	Cooldown, StartDelay, Hold  time.Duration
	On, Off, Status             string // commands, as lists of YAML
	Listen, Internal, Telemetry string
	PeerKeyFile, UserKey        string
}

// siteSettings is one site as one process sees it.
type siteSettings struct {
	Name, URL string
	Servers   []string
}

// The sites: one by Penstock's queues and tables, one without them.
const (
	dispatched = "penstock"
	plain      = "plain"
)

// points is how many entry points each site has.
const points = 2

// addresses are where everything listens.
type addresses struct {
	bus, serve, room string
	sites            [2]siteAddresses
}

// siteAddresses are those of a site.
type siteAddresses struct {
	entries [points]entryAddresses
	servers []string
	control []string // of the servers
}

type entryAddresses struct{ public, internal, telemetry string }

// addressesOf is how many addresses there are.
func addressesOf() int { return 3 + 2*(3*points+2*len(slowness)) }

// fill hands out addresses.
func (a *addresses) fill(list []string) {
	next := func() string {
		x := list[0]
		list = list[1:]
		return x
	}
	a.bus, a.serve, a.room = next(), next(), next()
	for i := range a.sites {
		s := &a.sites[i]
		for k := range s.entries {
			s.entries[k] = entryAddresses{next(), next(), next()}
		}
		for range slowness {
			s.servers, s.control = append(s.servers, next()), append(s.control, next())
		}
	}
}

// written are the configurations that were written.
type written struct {
	serve   string
	entries [2][points]string
}

// write writes the configurations. Serve and the server switch know the servers of the site
// penstock alone, and so no others are decided.
func (w *world) write(rng *rand.Rand) (*written, error) {
	base := settings{
		Dispatches: true, Policy: w.show.Policy, Workers: workers, Initial: initial, Cost: cost, Critical: critical, Classes: classes, Ramp: w.show.cooldown() / 2,
		Cooldown: w.show.cooldown(), StartDelay: time.Second, Hold: w.show.hold(),
		On: w.hook("on"), Off: w.hook("off"), Status: w.hook("status"),
		PeerKeyFile: filepath.Join(w.show.Dir, "peer.key"), UserKey: stage.Secret(rng),
	}
	if err := os.WriteFile(base.PeerKeyFile, []byte(stage.Secret(rng)), 0o600); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	sites := func(with int) (out []siteSettings) {
		for i, name := range []string{dispatched, plain} {
			x := siteSettings{Name: name, URL: "http://" + w.at.sites[i].entries[0].public}
			for _, s := range w.at.sites[i].servers {
				if i == with {
					x.Servers = append(x.Servers, "http://"+s)
				}
			}
			out = append(out, x)
		}
		return out
	}
	f := &written{serve: filepath.Join(w.show.Dir, "penstock.yaml")}
	own := base
	own.Sites, own.Listen, own.Internal, own.Telemetry = sites(0), w.at.sites[0].entries[0].public, w.at.sites[0].entries[0].internal, w.at.serve
	if err := stage.Configure(f.serve, settingsTemplate, &own); err != nil {
		return nil, err
	}
	for i := range w.at.sites {
		for k, at := range w.at.sites[i].entries {
			own := base
			own.Dispatches, own.Sites = i == 0, sites(i)
			own.Listen, own.Internal, own.Telemetry = at.public, at.internal, at.telemetry
			f.entries[i][k] = filepath.Join(w.show.Dir, entryName(i, k)+".yaml")
			if err := stage.Configure(f.entries[i][k], settingsTemplate, &own); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// hook is the command for an action, as a list of YAML.
func (w *world) hook(action string) string {
	b, err := json.Marshal(append(append([]string{}, w.show.Hook...), action, "--room", "http://"+w.at.room, "--server", "{server}"))
	if err != nil {
		return "[]" // Strings can always be encoded.
	}
	return string(b)
}

// entryName names an entry point.
func entryName(site, number int) string {
	return fmt.Sprintf("entry-%s-%c", []string{dispatched, plain}[site], 'a'+rune(number))
}
