package config

import (
	"strconv"
	"strings"
	"time"
)

// Coding is the kind of DESIGN §4.4: which erasure code a coder's requests get at
// which backlog. It is decided if there are coders.
type Coding struct {
	// Policy is tofec, greedy, static, replicate or hedge.
	Policy string `yaml:"policy"`
	// Window is the width of a window, a multiple of 10 s.
	Window Duration `yaml:"window"`
	// Connections that a coder holds to its stores, if it does not say so itself.
	Connections int `yaml:"connections"`
	// KMax is the most chunks needed, RMax the most n/k.
	KMax int     `yaml:"k_max"`
	RMax float64 `yaml:"r_max"`
	// MaxRequests is the most requests to stores for one read or write, MaxReadPrice the
	// most US dollars that a million reads may cost; 0: no cap.
	MaxRequests  int     `yaml:"max_requests"`
	MaxReadPrice float64 `yaml:"max_read_price"`
	// History is how many windows a fit rests on, MinSamples the least tasks in them.
	History    int `yaml:"history"`
	MinSamples int `yaml:"min_samples"`
	// Change is by how much a threshold must have changed for another table.
	Change float64 `yaml:"change"`
	// TTL is how long a table is good for.
	TTL Duration `yaml:"ttl"`
	// Code is that of static, replicate and hedge; zero is the policy's own.
	Code Code `yaml:"code"`
	// HedgeQuantile is the share of requests that is done before a hedge asks for more.
	HedgeQuantile float64 `yaml:"hedge_quantile"`
	// Uncorrected takes the paper's thresholds as they are.
	Uncorrected bool `yaml:"uncorrected"`
}

// Code is an erasure code: n chunks asked for, k needed.
type Code struct {
	N int `yaml:"n"`
	K int `yaml:"k"`
}

// Coder is a front of coded object storage (penstock coder). Tables name it.
type Coder struct {
	// Name is unique, and the scope of its tables.
	Name string `yaml:"name"`
	// Site is where it runs.
	Site string `yaml:"site"`
	// Listen is the address of its S3 API; Region is what clients sign for.
	Listen string `yaml:"listen"`
	Region string `yaml:"region"`
	// Public answers off loopback without TLS.
	Public bool     `yaml:"public"`
	TLS    CoderTLS `yaml:"tls"`
	// BodyRate is the least rate at which a client sends or takes a body; 0: 64 KiB a
	// second. What slower ones hold is memory that others wait for.
	BodyRate Rate `yaml:"body_rate"`
	// KeysFile holds the access keys of clients.
	KeysFile string `yaml:"keys_file"`
	// Admin is the address of its status and scrub; TokenFile holds their token, needed
	// off loopback.
	Admin     string `yaml:"admin"`
	TokenFile string `yaml:"token_file"`
	// Layout is shared (one store) or spread (an object lies in N of the stores, any K of
	// which are enough; more than N are spare: blobs of a store that is lost move there).
	Layout string `yaml:"layout"`
	N      int    `yaml:"n"`
	K      int    `yaml:"k"`
	// Durability is how many chunks must be stored before a write is answered: k, n, or
	// k+D.
	Durability string       `yaml:"durability"`
	Stores     []CoderStore `yaml:"stores"`
	// Connections to its stores in all; 0: coding.connections. Background is how many
	// of them repairs may take; 0: a quarter. Queue is the most requests that wait; 0:
	// 1024.
	Connections int `yaml:"connections"`
	Background  int `yaml:"background"`
	Queue       int `yaml:"queue"`
	// Segment is how many bytes are coded together; 0: 8 MiB.
	Segment Size `yaml:"segment"`
	// TaskTimeout is after how long a chunk counts as failed; 0: 30 s.
	TaskTimeout Duration `yaml:"task_timeout"`
	// CatalogSync lets a write wait until the stores have its entry of the catalog too.
	CatalogSync bool `yaml:"catalog_sync"`
	// Scrub is how often everything is read and checked; 0: only when told to.
	Scrub Duration `yaml:"scrub"`
}

// CoderTLS names files in PEM.
type CoderTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// CoderStore is a store of chunks.
type CoderStore struct {
	// Name is unique over all coders: it is the server of chunk tasks.
	Name string `yaml:"name"`
	// URL is dir:FOLDER, s3://BUCKET/PREFIX?… or jetstream:BUCKET.
	URL string `yaml:"url"`
}

// Layouts of coders.
const (
	LayoutShared = "shared"
	LayoutSpread = "spread"
)

// Codes says whether anything is coded.
func (c *Config) Codes() bool { return len(c.Coders) > 0 }

// Coder returns the coder of that name, nil if there is none.
func (c *Config) Coder(name string) *Coder {
	for i := range c.Coders {
		if c.Coders[i].Name == name {
			return &c.Coders[i]
		}
	}
	return nil
}

// ConnectionsOf is how many connections a coder holds.
func (c *Config) ConnectionsOf(x *Coder) int {
	if x.Connections > 0 {
		return x.Connections
	}
	return c.Coding.Connections
}

// durable says whether Durability is one of its forms, with at most so many chunks
// beyond k.
func (x *Coder) durable(most int) bool {
	switch d, _ := strings.CutPrefix(x.Durability, "k+"); {
	case x.Durability == "", x.Durability == "k", x.Durability == "n":
		return true
	case d != x.Durability:
		n, err := strconv.Atoi(d)
		return err == nil && n >= 1 && n <= most
	}
	return false
}

// LayoutName is the layout, shared if none is named.
func (x *Coder) LayoutName() string {
	if x.Layout == "" {
		return LayoutShared
	}
	return x.Layout
}

func defaultCoding() Coding {
	return Coding{
		Policy: "tofec", Window: Duration(10 * time.Second), Connections: 16, KMax: 6, RMax: 2, MaxRequests: 12, History: 30,
		MinSamples: 200, Change: 0.25, TTL: Duration(10 * time.Minute), HedgeQuantile: 0.95,
	}
}
