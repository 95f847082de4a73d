package topology

import (
	"crypto/sha256"
	"encoding/hex"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/pipeline/config"
	"penstock/producers/replay/route"
	"penstock/schemas/control"
)

// placementConfig is the configuration of the policy: what the file says, the
// friends of before the first window, and where data is known to be.
// policy is used where the file leaves it to the verb.
func placementConfig(cfg *config.Config, policy string, friends []placement.Friend, locations map[string]control.Location) placement.Config {
	p := cfg.Placement
	if p.Policy != config.Auto {
		policy = p.Policy
	}
	if p.Place == config.Auto {
		p.Place = "" // The policy's own.
	}
	out := placement.Config{
		Window: p.Window.Std(), Alpha: p.Alpha, Beta: p.Beta, Headroom: p.Headroom, TieTolerance: p.TieTolerance,
		Place: p.Place, Traffic: p.Traffic, Limits: placement.Limits{Moves: p.Limits.Moves, Bytes: int64(p.Limits.Bytes)},
		Cooldown: p.CooldownOf(policy), MinRequests: int64(p.MinRequests), Friends: friends, Locations: locations,
		Policy: policy, BackOff: p.BackOff,
	}
	if policy == placement.Optimal {
		out.Objective, out.Egress = placement.Objective(p.Objective), cfg.Prices.Egress
	}
	for _, s := range cfg.Sites {
		out.Sites = append(out.Sites, placement.Site{
			Name: s.Name, Lat: s.Lat, Lon: s.Lon, Capacity: s.Capacity.In(p.Window.Std()),
		})
	}
	for _, r := range cfg.Residency {
		out.Residency = append(out.Residency, placement.Rule{Match: r.Match, Sites: r.Sites})
	}
	return out
}

// placementFactory makes the policy of any configuration that was ever in
// force.
func placementFactory(config []byte) (decider.Policy, error) {
	p, err := placement.Parse(config)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// routeSites are the sites as the replay's routing needs them.
func routeSites(cfg *config.Config) []route.Site {
	out := make([]route.Site, len(cfg.Sites))
	for i, s := range cfg.Sites {
		out[i] = route.Site{Name: s.Name, Lat: s.Lat, Lon: s.Lon}
	}
	return out
}

// allowed answers for the replay which sites, in config order, may serve a new
// owner: the same rules that bind the policy.
func allowed(p *placement.Config) func(owner string) []bool {
	if len(p.Residency) == 0 {
		return nil
	}
	return placement.NewResidency(p.Sites, p.Residency).Allowed
}

// userKeyPrint stands for the key of the users' hash in a fingerprint.
func userKeyPrint(key string) string {
	sum := sha256.Sum256([]byte("penstock user key\x00" + key))
	return hex.EncodeToString(sum[:8])
}
