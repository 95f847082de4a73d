package topology

import (
	"fmt"

	"penstock/consumers/decider"
	"penstock/consumers/decider/coding"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// codingConfig is the configuration of the policy of coding: what the file says.
func codingConfig(cfg *config.Config) coding.Config {
	k := &cfg.Coding
	out := coding.Config{
		Policy: control.CodingPolicy(k.Policy), Window: k.Window.Std(), History: k.History, MinSamples: int64(k.MinSamples),
		Connections: k.Connections, KMax: k.KMax, RMax: k.RMax, MaxRequests: k.MaxRequests, MaxReadPrice: k.MaxReadPrice,
		Price: coding.Price{Read: noneIfZero(cfg.Prices.StoreReads), Write: noneIfZero(cfg.Prices.StoreWrites)},
		Code:  coding.Code(k.Code), HedgeQuantile: k.HedgeQuantile, Uncorrected: k.Uncorrected, Change: noneIfZero(k.Change), TTL: k.TTL.Std(),
	}
	for i := range cfg.Coders {
		x := &cfg.Coders[i]
		c := coding.Coder{Name: x.Name, N: x.N, K: x.K, Connections: x.Connections}
		for _, s := range x.Stores {
			c.Members = append(c.Members, s.Name)
		}
		out.Coders = append(out.Coders, c)
	}
	return out
}

// codingFactory makes the policy of any configuration that was ever in force.
func codingFactory(config []byte) (decider.Policy, error) {
	p, err := coding.Parse(config)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// newCoding is the policy of the configuration. The error wraps ErrOptions: what is
// wrong is in the file.
func newCoding(cfg *config.Config) (*coding.Policy, error) {
	p, err := coding.New(codingConfig(cfg))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return p, nil
}

// CheckCoding makes the policy of coding as serve and a replay would. The error wraps
// ErrOptions; nil too if the configuration has no coders.
func CheckCoding(cfg *config.Config) error {
	if !cfg.Codes() {
		return nil
	}
	_, err := newCoding(cfg)
	return err
}
