package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"penstock/infra/address"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
)

// servers checks a list of servers.
func (c *checker) servers(at string, urls []string) {
	seen := map[string]bool{}
	for i, s := range urls {
		p := fmt.Sprintf("%s[%d]", at, i)
		c.base(p, s)
		c.need(!seen[s], p, s, "a server that is not listed before")
		seen[s] = true
	}
}

// base checks a URL to which paths are added.
func (c *checker) base(at, s string) {
	u, err := url.Parse(s)
	c.need(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/") == "" &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.User == nil, at, s, "an http or https URL without a path")
}

func (c *checker) entry(cfg *Config) {
	e := &cfg.Entry
	c.address("entry.listen", e.Listen)
	c.session(e)
	c.need((e.TLS.Cert == "") == (e.TLS.Key == ""), "entry.tls", "", "both cert and key, or neither")
	c.need(e.Component != "" && len(e.Component) <= 200, "entry.component", e.Component, "a name of 1 to 200 bytes")
	c.rules("entry.owner", "owner", e.Owner)
	c.rules("entry.user", "user", e.User)
	c.need(e.JWT.SecretFile == "" || e.JWT.PublicKeyFile == "", "entry.jwt.secret_file", e.JWT.SecretFile, "a secret or a public key, not both")
	c.need(!e.JWT.Required || e.JWT.SecretFile != "" || e.JWT.PublicKeyFile != "", "entry.jwt.required", "true", "a key to verify tokens with")
	for i, r := range e.Class {
		p := fmt.Sprintf("entry.class[%d]", i)
		_, err := identify.CompilePattern(r.Path, "")
		c.need(err == nil, p+".path", r.Path, "a pattern such as /static/**"+reason(err))
		c.need(r.Class != "" && len(r.Class) <= 200, p+".class", r.Class, "a name of 1 to 200 bytes")
	}
	c.oneOf("entry.answer", e.Answer, "forward", "redirect")
	c.unknown(cfg)
	c.oneOf("entry.barrier", e.Barrier, Auto, "always", "off")
	for i, n := range e.TrustedProxies {
		_, err := netip.ParsePrefix(n)
		c.need(err == nil, fmt.Sprintf("entry.trusted_proxies[%d]", i), n, "a network such as 10.0.0.0/8")
	}
	c.between("entry.trace_sample", e.TraceSample, 0, 1)
	c.sized("entry.replay", e.Replay, 0, 64_000_000)
	c.need(e.ServerTiming == "" || strict.IsToken(e.ServerTiming), "entry.server_timing", e.ServerTiming, "the name of a metric, such as db")
	c.need(e.Spool >= 1_000_000, "entry.spool", e.Spool.String(), "at least 1MB")
	c.entryLimits(&e.Limits)
	c.health(e)
}

func (c *checker) entryLimits(l *EntryLimits) {
	c.sized("entry.limits.header", l.Header, 1000, 16_000_000)
	c.between("entry.limits.connections", float64(l.Connections), 1, 1e6)
	c.need(l.HeaderTimeout > 0, "entry.limits.header_timeout", l.HeaderTimeout.String(), "more than 0")
	c.need(l.IdleTimeout > 0, "entry.limits.idle_timeout", l.IdleTimeout.String(), "more than 0")
}

func (c *checker) health(e *Entry) {
	c.between("entry.retry.attempts", float64(e.Retry.Attempts), 1, 10)
	c.between("entry.retry.budget", e.Retry.Budget, 0, 1)
	h := e.Health
	c.need(h.Path == "" || strings.HasPrefix(h.Path, "/"), "entry.health.path", h.Path, "a path such as /healthz, or nothing")
	c.need(h.Interval > 0, "entry.health.interval", h.Interval.String(), "more than 0")
	c.need(h.Timeout > 0, "entry.health.timeout", h.Timeout.String(), "more than 0")
	c.need(h.Timeout <= h.Interval || h.Interval <= 0, "entry.health.timeout", h.Timeout.String(), "at most health.interval, "+h.Interval.String())
	c.between("entry.health.down", float64(h.Down), 1, 1000)
	c.between("entry.health.up", float64(h.Up), 1, 1000)
	c.between("entry.health.failures", float64(h.Failures), 0, 1e6)
	c.need(h.Eject > 0, "entry.health.eject", h.Eject.String(), "more than 0")
	c.between("entry.health.max_ejected", h.MaxEjected, 0, 1)
}

func (c *checker) unknown(cfg *Config) {
	const expected = "local, first, hash or site:NAME"
	if name, ok := strings.CutPrefix(cfg.Entry.Unknown, "site:"); ok {
		c.need(cfg.Site(name) != nil, "entry.unknown", cfg.Entry.Unknown, "site: and the name of a site")
		return
	}
	switch cfg.Entry.Unknown {
	case "local", "first", "hash":
	default:
		c.need(false, "entry.unknown", cfg.Entry.Unknown, expected)
	}
}

// rules checks how an id is found.
func (c *checker) rules(at, id string, rules []Rule) {
	for i, r := range rules {
		p := fmt.Sprintf("%s[%d]", at, i)
		set := 0
		for _, s := range []string{r.Path, r.Header, r.Cookie, r.Claim} {
			if s != "" {
				set++
			}
		}
		if r.Address {
			set++
		}
		c.need(set == 1, p, "", "exactly one of path, header, cookie, claim and address")
		if set != 1 {
			continue
		}
		r.Hash, r.Address = false, false // The key is there when an entry point starts.
		_, err := identify.Compile(id, []identify.Rule{identify.Rule(r)}, nil)
		switch {
		case r.Path != "":
			c.need(err == nil, p+".path", r.Path, "a pattern with {"+id+"}, such as /u/{"+id+"}/**"+reason(err))
		case r.Header != "":
			c.need(err == nil, p+".header", r.Header, "the name of a header that clients can send, such as X-Tenant")
		case r.Cookie != "":
			c.need(err == nil, p+".cookie", r.Cookie, "the name of a cookie, such as sid")
		}
	}
}

// reason says behind what is expected why it is not that, in a few words.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := strings.TrimSuffix(err.Error(), ": "+identify.ErrRule.Error())
	if _, after, found := strings.Cut(text, "\": "); found {
		return " (" + after + ")"
	}
	return ""
}

// sized checks a size; bounds are told as sizes.
func (c *checker) sized(path string, got, least, most Size) {
	c.need(got >= least && got <= most, path, got.String(), least.String()+" to "+most.String())
}

// peerNotes says what entry points of several sites have to have in common.
func (c *Config) peerNotes() []string {
	urls := map[string]string{}
	for _, s := range c.Sites {
		if s.URL != "" {
			urls[strings.TrimRight(s.URL, "/")] = s.Name
		}
	}
	var notes []string
	for _, s := range c.Sites {
		for _, u := range s.Servers {
			if at, ok := urls[strings.TrimRight(u, "/")]; ok {
				notes = append(notes, fmt.Sprintf("the server %s of site %s is the url of site %s: where an entry point stands there, requests go in circles", u, s.Name, at))
			}
		}
	}
	if len(urls) > 1 && c.Entry.PeerKeyFile == "" && c.Privacy.UserKey == "" {
		notes = append(notes, "several sites have a url, but neither entry.peer_key_file nor privacy.user_key is set: their entry points can't know each other")
	}
	return notes
}

func (c *checker) redirector(r *Redirector) {
	c.address("redirector.listen", r.Listen)
	c.need(r.Rate >= 0, "redirector.rate", strconv.Itoa(r.Rate), "0 (no limit) or more lookups a second")
	c.need(r.TotalRate >= 0, "redirector.total_rate", strconv.Itoa(r.TotalRate), "0 (no limit) or more lookups a second")
	c.need(address.IsLoopback(address.Host(r.Listen)) || r.Public || r.TokenFile != "", "redirector.token_file", "",
		"a token file, or public: true, since listen is off loopback")
}

func (c *checker) address(path, listen string) {
	_, port, err := net.SplitHostPort(listen)
	_, perr := strconv.ParseUint(port, 10, 16)
	c.need(err == nil && perr == nil, path, listen, "HOST:PORT")
}
