package topology

import (
	"fmt"

	"penstock/consumers/decider"
	"penstock/consumers/decider/split"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// splitConfig is the configuration of the policy of split: what the file says.
func splitConfig(cfg *config.Config) split.Config {
	s := &cfg.Split
	out := split.Config{
		Policy: s.Policy, Window: s.Window.Std(), History: s.History, MinSamples: int64(s.MinSamples), Damping: s.Damping,
		MaxStep: split.Step(s.MaxStep), Change: noneIfZero(s.Change), Margin: noneIfZero(s.Margin), DeadBand: noneIfZero(s.DeadBand),
		TTL: s.TTL.Std(), ErrorCost: noneIfZero(s.ErrorCost.Std()), Failing: s.Failing, Resolution: s.Resolution,
		Probes:   split.Probing{Share: noneIfZero(s.Probes.Share), Floor: s.Probes.Floor},
		Colocate: s.Colocate, Egress: cfg.Prices.Egress, MSPerUSD: s.MSPerUSD, EntryScope: control.Outside,
	}
	if !s.Cooldown.Auto {
		out.Cooldown = noneIfZero(s.Cooldown.Std())
	}
	for _, site := range cfg.Sites {
		out.Sites = append(out.Sites, split.Site{Name: site.Name, Lat: site.Lat, Lon: site.Lon})
	}
	for _, r := range s.Residency {
		out.Residency = append(out.Residency, split.Rule(r))
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, split.Link{From: l.From, To: l.To, Delay: l.Delay.Std()})
	}
	for i := range cfg.Components {
		k := &cfg.Components[i]
		out.Components = append(out.Components, split.Component{
			Name: k.Name, Sites: cfg.SitesOf(k.Name), Capacity: k.Capacity, Pin: k.Pin, WritesAt: k.WritesAt,
			CallBytes: int64(k.CallBytes), AnswerBytes: int64(k.AnswerBytes),
		})
	}
	for i := range cfg.Coders {
		out.Coders = append(out.Coders, cfg.Coders[i].Name)
	}
	// What entry points call is known by its servers, whether it is listed or not.
	if name := cfg.Entry.Component; cfg.Component(name) == nil && len(cfg.SitesOf(name)) > 0 {
		out.Components = append(out.Components, split.Component{Name: name, Sites: cfg.SitesOf(name)})
	}
	return out
}

// splitFactory makes the policy of any configuration that was ever in force.
func splitFactory(config []byte) (decider.Policy, error) {
	p, err := split.Parse(config)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// newSplit is the policy of the configuration. The error wraps ErrOptions: what is
// wrong is in the file.
func newSplit(cfg *config.Config) (*split.Policy, error) {
	p, err := split.New(splitConfig(cfg))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return p, nil
}
