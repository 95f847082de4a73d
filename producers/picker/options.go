package picker

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

// Options say who calls, from where, and whom to ask.
type Options struct {
	// Client asks the API. Defaults to one of the picker's own.
	Client *http.Client
	// Clock paces questions and trials of servers. Defaults to the machine's.
	Clock clock.Clock
	// Component is the caller: this application. Needed.
	Component string
	// Failures in a row put a server out. Defaults to 3.
	Failures int
	// Fallback are servers of components at this site, for as long as the API names
	// none there: absolute URLs, http or https, without query.
	Fallback map[string][]string
	// Logger gets what an operator should see.
	Logger zerolog.Logger
	// MaxOut is the longest that a server is out before it is tried again. Defaults to
	// 30 s.
	MaxOut time.Duration
	// Out is how long a server is out at first. Defaults to 1 s.
	Out time.Duration
	// Registerer, if set, gets the metrics penstock_picker_….
	Registerer prometheus.Registerer
	// Retry is the longest time between questions while the API can't be asked.
	// Defaults to 5 s.
	Retry time.Duration
	// Site is where this application runs. Needed.
	Site string
	// Token is sent to the API, if it is set.
	Token string
	// URL is the API's: http or https, host, and perhaps a path. Needed.
	URL string
	// Wait is how long the API is to keep an answer back that is known already.
	// Defaults to 30 s; the API has its own limit.
	Wait time.Duration
}

func (o *Options) complete() error {
	for _, f := range [...]struct{ name, value string }{{"URL", o.URL}, {"Component", o.Component}, {"Site", o.Site}} {
		if f.value == "" {
			return fmt.Errorf("%s is not set: %w", f.name, ErrOptions)
		}
	}
	if !control.ServerURL(o.URL) {
		return fmt.Errorf("URL %.80q: expected http or https, host and perhaps a path: %w", o.URL, ErrOptions)
	}
	o.URL = strings.TrimRight(o.URL, "/")
	for _, name := range slices.Sorted(maps.Keys(o.Fallback)) {
		for _, s := range o.Fallback[name] {
			if !control.ServerURL(s) {
				return fmt.Errorf("fallback of %.80q: server %.80q: expected http or https, host and perhaps a path: %w", name, s, ErrOptions)
			}
		}
	}
	if o.Failures < 0 || o.Out < 0 || o.MaxOut < 0 || o.Retry < 0 || o.Wait < 0 {
		return fmt.Errorf("a number below 0: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	o.Failures = cmp.Or(o.Failures, 3)
	o.Out = cmp.Or(o.Out, time.Second)
	o.MaxOut = max(o.Out, cmp.Or(o.MaxOut, 30*time.Second))
	o.Retry = cmp.Or(o.Retry, 5*time.Second)
	o.Wait = cmp.Or(o.Wait, 30*time.Second)
	return nil
}

// question is the URL of the question for a component.
func (o *Options) question(component string) string {
	query := url.Values{"from_site": {o.Site}, "from": {o.Component}, "wait": {o.Wait.String()}}
	return o.URL + control.SplitPath + url.PathEscape(component) + "?" + query.Encode()
}
