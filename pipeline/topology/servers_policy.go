package topology

import (
	"fmt"

	"penstock/consumers/decider"
	"penstock/consumers/decider/servers"
	"penstock/pipeline/config"
)

// nextToNothing is the penalty of classes without a limit: the policy knows no 0.
const nextToNothing = 1e-9

// serversConfig is the configuration of the policy of servers: what the file says.
func serversConfig(cfg *config.Config) servers.Config {
	s, w := &cfg.Servers, &cfg.Servers.Switching
	out := servers.Config{
		Policy: w.Policy, Window: s.Window.Std(), Slots: s.InService, ServerCost: s.ServerCost, Critical: w.Critical, Hysteresis: w.Hysteresis,
		Utilisation: w.Utilisation, Hold: int(w.Hold / max(s.Window, 1)), Cooldown: noneIfZero(w.Cooldown.Std()), StartDelay: noneIfZero(w.StartDelay.Std()),
		Least: w.Least, Most: w.Most, MostUp: w.MostUp, Retry: w.Retry.Std(), TTL: s.TTL.Std(),
		Penalty: nextToNothing,
	}
	for _, name := range s.ClassNames() {
		k := s.Classes[name]
		if name == config.OtherClass {
			out.Penalty = max(k.Penalty, nextToNothing)
			continue
		}
		out.Classes = append(out.Classes, servers.Class{Name: name, Limit: k.TMax.Std(), Penalty: noneIfZero(k.Penalty)})
	}
	for i := range cfg.Coders {
		out.Coders = append(out.Coders, cfg.Coders[i].Name)
	}
	for _, site := range cfg.Sites {
		x, n := servers.Site{Name: site.Name}, 0
		for _, zone := range cfg.ZonesOf(site.Name) {
			z := servers.Zone{Name: zone.Name}
			for _, name := range zone.Servers {
				z.Servers = append(z.Servers, servers.Server{Name: name, Off: w.Initial > 0 && n >= w.Initial})
				n++
			}
			x.Zones = append(x.Zones, z)
		}
		if n > 0 {
			out.Sites = append(out.Sites, x)
		}
	}
	return out
}

// serversFactory makes the policy of any configuration that was ever in force.
func serversFactory(config []byte) (decider.Policy, error) {
	p, err := servers.Parse(config)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// newServers is the policy of the configuration. The error wraps ErrOptions: what is
// wrong is in the file.
func newServers(cfg *config.Config) (*servers.Policy, error) {
	p, err := servers.New(serversConfig(cfg))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return p, nil
}
