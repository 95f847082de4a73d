package gatewayapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/kubeapi"
	"penstock/consumers/executor/router"
	"penstock/infra/clock"
	"penstock/infra/shares"
)

// Units is the resolution: weights of a rule's sites sum up to it, unless a foreign
// backendRef has weight beside them.
const Units = 10_000

// mostWeight is the greatest weight that the schema allows.
const mostWeight = 1_000_000

// Options of a Target.
type Options struct {
	// CAFile holds the certificates, in PEM, that the API server's is signed by.
	// Defaults to the machine's, or to the service account's without a URL.
	CAFile string
	// Clock paces the waiting of Put and Drain. Defaults to the machine's.
	Clock clock.Clock
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is the target in outcomes. Defaults to "gateway".
	Name string
	// Routes are what may be written. Needed.
	Routes []Route
	// Running counts the requests that gateways have at a replica, for Drain; nil if
	// nobody knows.
	Running func(ctx context.Context, r shares.Replica) (int, error)
	// StateFile keeps the weights of before and what drains. Empty: they are lost with
	// the process.
	StateFile string
	// Timeout bounds one request to the API server. Defaults to 5 s.
	Timeout time.Duration
	// TokenFile holds the bearer token; it is read again for each request, because
	// tokens of service accounts change. Empty: none is sent.
	TokenFile string
	// URL of the API server. Empty: that of the cluster that the process runs in, with
	// the token and the CA of its service account.
	URL string
	// Wait is how long Put waits for a gateway to accept what was written. Defaults to
	// 1 s.
	Wait time.Duration
}

// Route is a rule of an HTTPRoute that carries the calls of a link.
type Route struct {
	// Namespace and Name are the HTTPRoute's.
	Namespace, Name string
	// Rule is the rule's name, or its place from 0.
	Rule string
	Link shares.Link
	// Backends is the backendRef of each site.
	Backends map[string]Backend
	// Writes is set for a rule that carries the calls that write, and they alone: it
	// follows a row's site for writes where it has one.
	Writes bool
}

// Backend is what a backendRef refers to.
type Backend struct {
	// Group and Kind default to a Service's.
	Group, Kind string
	// Namespace defaults to the route's.
	Namespace string
	Name      string
	// Port 0 is any.
	Port int
}

// What a Target counts besides.
const (
	// Ignored counts rows of tables that no Route carries.
	Ignored executor.Counter = "ignored"
	// Silent counts versions that no gateway has accepted while Put waited.
	Silent executor.Counter = "silent"
	// Unseen counts questions for endpoints that we are not permitted to ask; all are
	// taken for ready then.
	Unseen executor.Counter = "unseen"
	// StateFile counts failures to write the state file. It is written with the next
	// change.
	StateFile executor.Counter = "state_file"
	// Conflicts counts patches that were made again because somebody else wrote.
	Conflicts executor.Counter = "conflicts"
)

// complete fills defaults in and checks.
func (o *Options) complete() error {
	o.Name = cmp.Or(o.Name, "gateway")
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Wait = cmp.Or(o.Wait, time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	if len(o.Routes) == 0 || o.Timeout < 0 || o.Wait < 0 {
		return fmt.Errorf("gateway: routes are needed, and no negative time: %w", router.ErrOptions)
	}
	if err := o.inCluster(); err != nil {
		return err
	}
	o.Routes = slices.Clone(o.Routes)
	taken := map[string]bool{}
	for i := range o.Routes {
		if err := o.Routes[i].complete(taken); err != nil {
			return err
		}
	}
	return nil
}

// inCluster finds the API server of the cluster that the process runs in.
func (o *Options) inCluster() error {
	api := kubeapi.Options{URL: o.URL, CAFile: o.CAFile, TokenFile: o.TokenFile}
	if err := api.InCluster(); err != nil {
		return fmt.Errorf("gateway: %w: %w", router.ErrOptions, err)
	}
	o.URL, o.TokenFile, o.CAFile = api.URL, api.TokenFile, api.CAFile
	return nil
}

func (r *Route) complete(taken map[string]bool) error {
	if r.Namespace == "" || r.Name == "" || r.Rule == "" || r.Link.From == "" || r.Link.To == "" || len(r.Backends) == 0 || taken[r.id()] {
		return fmt.Errorf("gateway: rule %.200q: expected a namespace, a name and a rule, once, a link and backends: %w", r.id(), router.ErrOptions)
	}
	taken[r.id()] = true
	all, seen := make(map[string]Backend, len(r.Backends)), map[Backend]string{}
	for site, b := range r.Backends {
		b.Kind, b.Namespace = cmp.Or(b.Kind, "Service"), cmp.Or(b.Namespace, r.Namespace)
		if site == "" || b.Name == "" || b.Port < 0 || seen[b] != "" {
			return fmt.Errorf("gateway: rule %.200q: site %.80q: expected names, and a backendRef that no other site has: %w", r.id(), site, router.ErrOptions)
		}
		all[site], seen[b] = b, site
	}
	r.Backends = all
	return nil
}

// id names the rule.
func (r *Route) id() string { return r.Namespace + "/" + r.Name + "/" + r.Rule }

// object names the HTTPRoute.
func (r *Route) object() key { return key{r.Namespace, r.Name} }

// place of the rule among those of an HTTPRoute; −1 if it isn't there.
func (r *Route) place(o *object) int {
	if i, err := strconv.Atoi(r.Rule); err == nil {
		if i < 0 || i >= len(o.Spec.Rules) {
			return -1
		}
		return i
	}
	return slices.IndexFunc(o.Spec.Rules, func(x rule) bool { return x.Name == r.Rule })
}

// sites are the rule's, sorted.
func (r *Route) sites() []string { return slices.Sorted(maps.Keys(r.Backends)) }
