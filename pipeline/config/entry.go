package config

import "time"

// Entry is what the entry points of all sites have in common (DESIGN §4.1, owner
// routing; §6). Which site an entry point stands at is said on its command line.
type Entry struct {
	// Listen is the address of the proxy.
	Listen string `yaml:"listen"`
	// Internal is the address at which components of the site call others; empty: they
	// go by themselves.
	Internal string `yaml:"internal"`
	// Session keeps a client's calls at one site while that has a share.
	Session Session `yaml:"session"`
	// TLS serves HTTPS, and HTTP/2 with it.
	TLS EntryTLS `yaml:"tls"`
	// H2C takes HTTP/2 without TLS too.
	H2C bool `yaml:"h2c"`
	// ServersH2 speaks HTTP/2 to the site's servers, also without TLS: gRPC needs it.
	ServersH2 bool `yaml:"servers_h2"`
	// Component is the name of the service behind it.
	Component string `yaml:"component"`
	// Owner and User are rules that find whose data is asked for, and who asks; the
	// first that yields one counts.
	Owner []Rule `yaml:"owner"`
	User  []Rule `yaml:"user"`
	// JWT is the key of rules by claim.
	JWT JWT `yaml:"jwt"`
	// Class names requests by their path; the first rule that matches counts.
	Class []ClassRule `yaml:"class"`
	// Answer says what is done with a request for an owner whose data is at another
	// site: forward, or redirect (307).
	Answer string `yaml:"answer"`
	// Unknown says where an owner is served who was never moved, imported or pinned:
	// local, first, hash or site:NAME.
	Unknown string `yaml:"unknown"`
	// Hold is for how long a request waits at most for a move of its owner to end.
	Hold Duration `yaml:"hold"`
	// Replay is how much of a body is kept so that the request can be sent again.
	Replay Size `yaml:"replay"`
	// Drain is how long running requests may take to end at a stop.
	Drain Duration `yaml:"drain"`
	// TrustedProxies are the networks whose word on the client's address counts.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// ForwardedOnly reads that word in Forwarded only, never in X-Forwarded-For.
	ForwardedOnly bool `yaml:"forwarded_only"`
	// PeerKeyFile holds the secret by which entry points know each other; without it
	// one is derived from Privacy.UserKey, which all have in common.
	PeerKeyFile string `yaml:"peer_key_file"`
	// Barrier says when moves hold writes here: auto, where the store has no write
	// barrier of its own; always; or off.
	Barrier string `yaml:"barrier"`
	// Limits bound what one client may take.
	Limits EntryLimits `yaml:"limits"`
	// Retry says how often a request is sent again that may be.
	Retry Retry `yaml:"retry"`
	// Health says when a server gets no requests.
	Health Health `yaml:"health"`
	// ServerTiming is the metric of the header Server-Timing that holds the service
	// time; empty takes app, total or the only one.
	ServerTiming string `yaml:"server_timing"`
	// TraceSample is the part of the traces that begin here that services are told to
	// record.
	TraceSample float64 `yaml:"trace_sample"`
	// GeoIP is an mmdb file, or a folder with country ranges and centroids.
	GeoIP string `yaml:"geoip"`
	// Spool is the most that is kept on disk while the bus is away.
	Spool Size `yaml:"spool"`
}

// EntryTLS names the files of a certificate and its key, in PEM.
type EntryTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Rule finds an id in a request. Exactly one of Path, Header, Cookie, Claim and
// Address is set.
type Rule struct {
	// Path is a pattern with {owner} or {user}, such as /u/{owner}/**.
	Path    string `yaml:"path"`
	Header  string `yaml:"header"`
	Cookie  string `yaml:"cookie"`
	Claim   string `yaml:"claim"`   // of a JSON Web Token in Authorization: Bearer
	Address bool   `yaml:"address"` // the client's; always hashed
	// Hash makes the id a keyed hash of what was found.
	Hash bool `yaml:"hash"`
}

// JWT is how tokens are verified.
type JWT struct {
	SecretFile    string `yaml:"secret_file"`
	PublicKeyFile string `yaml:"public_key_file"`
	// Required answers 401 where a token is missing or bad.
	Required bool `yaml:"required"`
}

// ClassRule names the class of the paths that match.
type ClassRule struct {
	Path  string `yaml:"path"`
	Class string `yaml:"class"`
}

// EntryLimits bound what one client may take; 0 is no limit where it is allowed.
type EntryLimits struct {
	Header        Size     `yaml:"header"`
	Body          Size     `yaml:"body"`
	Connections   int      `yaml:"connections"`
	HeaderTimeout Duration `yaml:"header_timeout"`
	IdleTimeout   Duration `yaml:"idle_timeout"`
	// BodyRate is the least rate at which a body must come.
	BodyRate Rate `yaml:"body_rate"`
}

// Retry says how often a request is sent again.
type Retry struct {
	Attempts int     `yaml:"attempts"` // in all, the first included
	Budget   float64 `yaml:"budget"`   // retries as a part of requests
}

// Health says when a server gets no requests.
type Health struct {
	Path     string   `yaml:"path"` // asked with GET; empty asks nothing
	Interval Duration `yaml:"interval"`
	Timeout  Duration `yaml:"timeout"`
	Down     int      `yaml:"down"` // failed probes in a row
	Up       int      `yaml:"up"`   // answered probes in a row
	// Failures is how many requests in a row have to fail; 0 takes no server out.
	Failures int      `yaml:"failures"`
	Eject    Duration `yaml:"eject"`
	// MaxEjected is the part of a site's servers that may be out at a time.
	MaxEjected float64 `yaml:"max_ejected"`
}

// Redirector is the service that tells where owners are (DESIGN §4.1).
type Redirector struct {
	Listen    string `yaml:"listen"`
	TokenFile string `yaml:"token_file"`
	// Public answers off loopback without a token.
	Public bool `yaml:"public"`
	// Rate is lookups a second for one client, TotalRate for all; 0 is no limit.
	Rate      int `yaml:"rate"`
	TotalRate int `yaml:"total_rate"`
	// MaxAge is how old its knowledge may be before it answers 503; 0 is any.
	MaxAge Duration `yaml:"max_age"`
}

func defaultEntry() Entry {
	return Entry{
		Listen: "127.0.0.1:8080", Component: "web", Session: Session{TTL: Duration(time.Hour)},
		Owner: []Rule{{Path: "/u/{owner}/**"}}, User: []Rule{{Address: true}},
		Answer: "forward", Unknown: "local", Barrier: Auto,
		Hold: Duration(time.Second), Replay: 64_000, Drain: Duration(30 * time.Second),
		Limits: EntryLimits{
			Header: 32_000, Connections: 10_000, HeaderTimeout: Duration(5 * time.Second), IdleTimeout: Duration(75 * time.Second),
			BodyRate: Rate{PerDay: 240 * 86400},
		},
		Retry: Retry{Attempts: 2, Budget: 0.2},
		Health: Health{
			Interval: Duration(5 * time.Second), Timeout: Duration(time.Second), Down: 3, Up: 2, Failures: 5,
			Eject: Duration(10 * time.Second), MaxEjected: 0.5,
		},
		TraceSample: 1, Spool: 1_000_000_000,
	}
}

func defaultRedirector() Redirector {
	return Redirector{Listen: "127.0.0.1:8090", Rate: 100}
}
