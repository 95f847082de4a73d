package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"penstock/infra/address"
	"penstock/schemas/control"
)

// coding checks how codes are chosen.
func (c *checker) coding(k *Coding) {
	policies := make([]string, len(control.CodingPolicies))
	for i, p := range control.CodingPolicies {
		policies[i] = string(p)
	}
	c.oneOf("coding.policy", k.Policy, policies...)
	c.need(k.Window > 0 && k.Window.Std()%(10*time.Second) == 0, "coding.window", k.Window.String(), "a multiple of 10s")
	c.between("coding.connections", float64(k.Connections), 1, 65_536)
	c.between("coding.k_max", float64(k.KMax), 1, 6)
	c.between("coding.r_max", k.RMax, 1, 16)
	c.between("coding.max_requests", float64(k.MaxRequests), float64(max(1, k.KMax)), control.MaxCodingN)
	c.need(k.MaxReadPrice >= 0 && k.MaxReadPrice <= maxObjective, "coding.max_read_price", num(k.MaxReadPrice), "0 (no cap) or more US dollars a million reads")
	c.between("coding.history", float64(k.History), 1, 360)
	c.need(k.MinSamples >= 1, "coding.min_samples", strconv.Itoa(k.MinSamples), "at least 1")
	c.need(k.Change >= 0 && k.Change < 1, "coding.change", num(k.Change), "0 to below 1")
	c.need(k.TTL.Std() >= 2*k.Window.Std(), "coding.ttl", k.TTL.String(), "at least two windows")
	c.need(k.HedgeQuantile > 0 && k.HedgeQuantile < 1, "coding.hedge_quantile", num(k.HedgeQuantile), "above 0, below 1")
	if k.Code != (Code{}) {
		got := fmt.Sprintf("n %d, k %d", k.Code.N, k.Code.K)
		c.need(k.Code.K >= 1 && k.Code.K <= k.KMax && k.Code.N >= k.Code.K && k.Code.N <= k.MaxRequests, "coding.code", got, "1 ≤ k ≤ k_max and k ≤ n ≤ max_requests")
		c.need(k.Policy != string(control.CodingReplicate) || k.Code.K == 1, "coding.code", got, "k 1, since the policy is replicate")
	}
}

// coders checks the fronts of coded storage.
func (c *checker) coders(cfg *Config) {
	names, stores, places := map[string]bool{}, map[string]bool{}, map[string]bool{}
	addresses := map[string]bool{}
	for i := range cfg.Coders {
		x, p := &cfg.Coders[i], fmt.Sprintf("coders[%d]", i)
		c.need(targetName.MatchString(x.Name), p+".name", x.Name, "a name of 1 to 64 letters, digits, _ and -")
		c.need(!names[x.Name], p+".name", x.Name, "a name that no other coder has")
		c.need(cfg.Component(x.Name) == nil, p+".name", x.Name, "a name that no component has")
		names[x.Name] = true
		c.need(cfg.Site(x.Site) != nil, p+".site", x.Site, "the name of a site")
		c.coderDoors(p, x, addresses)
		c.coderLayout(cfg, p, x)
		for j, s := range x.Stores {
			at := fmt.Sprintf("%s.stores[%d]", p, j)
			c.need(targetName.MatchString(s.Name), at+".name", s.Name, "a name of 1 to 64 letters, digits, _ and -")
			c.need(!stores[s.Name], at+".name", s.Name, "a name that no other store of a coder has")
			stores[s.Name] = true
			c.coderStore(at+".url", x.Name, s.URL, places)
		}
		c.need(x.Connections >= 0 && x.Connections <= 65_536, p+".connections", strconv.Itoa(x.Connections), "0 (coding.connections) to 65536")
		c.need(x.Background >= 0 && x.Background <= cfg.ConnectionsOf(x), p+".background", strconv.Itoa(x.Background), "0 (a quarter) to the connections")
		c.need(x.Queue >= 0, p+".queue", strconv.Itoa(x.Queue), "0 (1024) or more requests")
		c.need(x.Segment == 0 || x.Segment >= 64<<10 && x.Segment <= 64<<20, p+".segment", strconv.FormatInt(int64(x.Segment), 10), "0 (8 MiB), or 64 KiB to 64 MiB")
		c.need(x.TaskTimeout.Std() == 0 || x.TaskTimeout.Std() >= time.Millisecond, p+".task_timeout", x.TaskTimeout.String(), "0 (30s), or at least 1ms")
		c.need(x.Scrub.Std() == 0 || x.Scrub.Std() >= time.Minute, p+".scrub", x.Scrub.String(), "0 (when told to), or at least 1m")
	}
}

// coderDoors checks who may come in, and that no two doors are the same.
func (c *checker) coderDoors(p string, x *Coder, taken map[string]bool) {
	c.need(x.Listen != "", p+".listen", "", "HOST:PORT of its S3 API")
	c.need(x.KeysFile != "", p+".keys_file", "", "the file with the access keys of clients")
	for _, door := range [...]struct{ name, listen string }{{".listen", x.Listen}, {".admin", x.Admin}} {
		if door.listen == "" {
			continue
		}
		c.address(p+door.name, door.listen)
		c.need(!taken[door.listen], p+door.name, door.listen, "an address that no other coder has")
		taken[door.listen] = !strings.HasSuffix(door.listen, ":0")
	}
	loopback := x.Listen == "" || address.IsLoopback(address.Host(x.Listen))
	c.need(loopback || x.Public || x.TLS.Cert != "", p+".tls", "", "a certificate, or public: true, since listen is off loopback")
	c.need((x.TLS.Cert == "") == (x.TLS.Key == ""), p+".tls", x.TLS.Cert, "both cert and key, or neither")
	c.need(x.Admin == "" || address.IsLoopback(address.Host(x.Admin)) || x.TokenFile != "", p+".token_file", "", "a token file, since admin is off loopback")
}

func (c *checker) coderLayout(cfg *Config, p string, x *Coder) {
	switch x.LayoutName() {
	case LayoutShared:
		c.need(len(x.Stores) == 1, p+".stores", strconv.Itoa(len(x.Stores)), "one store, since the layout is shared")
		c.need(x.N == 0 && x.K == 0, p+".n", strconv.Itoa(x.N), "no n and k: in the layout shared they are chosen request by request")
		c.need(x.durable(cfg.Coding.MaxRequests), p+".durability", x.Durability, "k, n or k+D")
	case LayoutSpread:
		c.need(x.K >= 1 && x.N > x.K && x.N <= 32, p+".n", fmt.Sprintf("n %d, k %d", x.N, x.K), "1 ≤ k < n ≤ 32")
		c.need(len(x.Stores) >= x.N, p+".stores", strconv.Itoa(len(x.Stores)), "n stores or more, since the layout is spread")
		c.need(x.durable(x.N-x.K), p+".durability", x.Durability, "k, n or k+D, D at most n−k")
	default:
		c.oneOf(p+".layout", x.Layout, LayoutShared, LayoutSpread)
	}
}

// coderStore checks the address of a store of chunks. Two may share one, as each coder
// has a prefix of its own, but two stores of one coder that are one place would fail
// together.
func (c *checker) coderStore(at, coder, text string, taken map[string]bool) {
	s, err := checkStore(text)
	if err == nil && s.Kind == "postgres" || err != nil && err.Error() == expectedStore {
		err = errors.New(expectedChunks)
	}
	text = withoutPassword(text)
	if err != nil {
		c.need(false, at, text, err.Error())
		return
	}
	place := coder + " " + s.Place()
	c.need(!taken[place], at, text, "a place that no other store of this coder is at")
	taken[place] = true
}

const expectedChunks = "dir:FOLDER, s3://BUCKET/PREFIX?endpoint=URL&region=NAME or jetstream:BUCKET"
