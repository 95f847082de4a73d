package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"penstock/infra/address"
	"penstock/producers/otlp/span"
)

// Spans is what receivers of spans have in common (penstock receive; DESIGN §3.1,
// §4.2).
type Spans struct {
	// GRPC and HTTP are where OTLP is taken; either may be empty, not both.
	GRPC string `yaml:"grpc"`
	HTTP string `yaml:"http"`
	// TLS secures both, and what receivers send each other.
	TLS SpansTLS `yaml:"tls"`
	// TokenFile holds what clients send as "Authorization: Bearer TOKEN"; off
	// loopback there must be one.
	TokenFile string `yaml:"token_file"`
	// Peers are the gRPC addresses of all receivers that share traces, in any order.
	// None: each is alone, and both halves of a call must come to one.
	Peers []string `yaml:"peers"`
	// Window is how long after its end a call waits for its other half: what
	// exporters gather spans for, and a second.
	Window Duration `yaml:"window"`
	// MaxAge is for how long the spans of a trace are kept at most.
	MaxAge Duration `yaml:"max_age"`
	// MaxSpans bounds the spans of open traces, MaxBody a request, unpacked.
	MaxSpans int  `yaml:"max_spans"`
	MaxBody  Size `yaml:"max_body"`
	// Service is what service_us is: own, without the calls that the callee waited
	// for, so that the delay of a request is a sum over its calls, as split adds it
	// up; or whole.
	Service string `yaml:"service"`
	// Entries are the roots of traces that are requests from outside: servers, all
	// (those of unknown kind too) or none.
	Entries string `yaml:"entries"`
	// Component, Site, Server, Callee, Class and Owner are attributes that fill
	// these columns: KEY, KEY=REGEXP or =VALUE, the first that a span has. Empty: the
	// default of each.
	Component []string `yaml:"component"`
	Site      []string `yaml:"site"`
	Server    []string `yaml:"server"`
	Callee    []string `yaml:"callee"`
	Class     []string `yaml:"class"`
	Owner     []string `yaml:"owner"`
	// Sites gives what an attribute names the name of a site.
	Sites map[string]string `yaml:"sites"`
	// Spool is the most that is kept on disk while the bus is away.
	Spool Size `yaml:"spool"`
}

// SpansTLS names files in PEM: a certificate and its key, and whoever signed those
// of peers (empty: whom the system trusts).
type SpansTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	CA   string `yaml:"ca"`
}

func defaultSpans() Spans {
	return Spans{
		GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318", Window: Duration(6 * time.Second), MaxAge: Duration(time.Minute),
		MaxSpans: 1 << 18, MaxBody: 16_000_000, Service: "own", Entries: "servers", Spool: 1_000_000_000,
	}
}

func (c *checker) spans(cfg *Config) {
	s := &cfg.Spans
	c.need(s.GRPC != "" || s.HTTP != "", "spans.grpc", "", "an address for grpc or http")
	for _, l := range [...]struct{ path, listen string }{{"spans.grpc", s.GRPC}, {"spans.http", s.HTTP}} {
		if l.listen == "" {
			continue
		}
		c.address(l.path, l.listen)
		c.need(address.IsLoopback(address.Host(l.listen)) || s.TokenFile != "", "spans.token_file", "",
			"a token file, since "+strings.TrimPrefix(l.path, "spans.")+" is off loopback")
	}
	c.need((s.TLS.Cert == "") == (s.TLS.Key == ""), "spans.tls", "", "both cert and key, or neither")
	c.peers(s)
	c.need(s.Window.Std() >= 100*time.Millisecond && s.Window.Std() <= 10*time.Minute, "spans.window", s.Window.String(), "100ms to 10m")
	c.need(s.MaxAge >= s.Window && s.MaxAge.Std() <= time.Hour, "spans.max_age", s.MaxAge.String(), "spans.window, "+s.Window.String()+", to 1h")
	c.between("spans.max_spans", float64(s.MaxSpans), 1, 1e7)
	c.sized("spans.max_body", s.MaxBody, 1000, 1_000_000_000)
	c.oneOf("spans.service", s.Service, "own", "whole")
	c.oneOf("spans.entries", s.Entries, "servers", "all", "none")
	for name, sources := range s.columns() {
		for i, text := range sources {
			_, err := span.ParseSource(text)
			c.need(err == nil, fmt.Sprintf("spans.%s[%d]", name, i), text, "KEY, KEY=REGEXP or =VALUE")
		}
	}
	for _, value := range slices.Sorted(maps.Keys(s.Sites)) {
		c.need(cfg.Site(s.Sites[value]) != nil, "spans.sites."+value, s.Sites[value], "the name of a site")
	}
	c.need(s.Spool >= 1_000_000, "spans.spool", s.Spool.String(), "at least 1MB")
}

// peers checks the list that all receivers have in common; which of them one is, is
// said on its command line.
func (c *checker) peers(s *Spans) {
	c.need(len(s.Peers) == 0 || s.GRPC != "", "spans.grpc", "", "an address, since receivers share traces over it")
	c.need(len(s.Peers) <= 100, "spans.peers", strconv.Itoa(len(s.Peers)), "at most 100 receivers")
	for i, p := range s.Peers {
		at := fmt.Sprintf("spans.peers[%d]", i)
		host, port, err := net.SplitHostPort(p)
		c.need(err == nil && host != "" && port != "" && port != "0", at, p, "HOST:PORT at which the others reach it")
		c.need(!slices.Contains(s.Peers[:i], p), at, p, "a receiver that is not listed before")
	}
}

// columns yields the sources of each column, in the order of the fields.
func (s *Spans) columns() func(yield func(string, []string) bool) {
	return func(yield func(string, []string) bool) {
		for _, f := range [...]struct {
			name    string
			sources []string
		}{
			{"component", s.Component},
			{"site", s.Site},
			{"server", s.Server},
			{"callee", s.Callee},
			{"class", s.Class},
			{"owner", s.Owner},
		} {
			if !yield(f.name, f.sources) {
				return
			}
		}
	}
}

// Rules are those by which attributes fill columns. The error is that of the first
// that is none; a checked configuration has none.
func (s *Spans) Rules() (r span.Rules, err error) {
	columns := map[string]*[]span.Source{
		"component": &r.Component, "site": &r.Site, "server": &r.Server, "callee": &r.Callee, "class": &r.Class, "owner": &r.Owner,
	}
	for name, texts := range s.columns() {
		if *columns[name], err = span.ParseSources(texts); err != nil {
			return r, fmt.Errorf("spans.%s: %w", name, err)
		}
	}
	r.Sites = s.Sites
	return r, nil
}
