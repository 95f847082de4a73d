package pull

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"penstock/infra/shares"
	"penstock/schemas/control"
)

// question is what is asked for.
type question struct {
	link shares.Link
	wait time.Duration
}

// Failure is why there is no answer.
type Failure struct {
	Error string `json:"error"` // a word for programs
	Text  string `json:"text"`
	// Components and Sites are what is known, where something else was asked for.
	Components []string `json:"components,omitempty"`
	Sites      []string `json:"sites,omitempty"`
}

// The words of failures.
const (
	failPath        = "bad-path"
	failQuery       = "bad-query"
	failComponent   = "unknown-component"
	failSite        = "unknown-site"
	failNotReady    = "not-ready"
	failWaiting     = "too-many-waiting"
	failLimited     = "too-many-requests"
	failMethod      = "method"
	failUnavailable = "unavailable"
)

// usable reports whether something can be a name.
func usable(name string) bool {
	return name != "" && len(name) <= control.MaxID && utf8.ValidString(name)
}

// read reads a question; status is 0, or that of the failure.
func (s *Server) read(u *url.URL) (q question, status int, f Failure) {
	rest, ours := strings.CutPrefix(u.EscapedPath(), control.SplitPath)
	component, err := url.PathUnescape(rest)
	if !ours || err != nil || strings.Contains(rest, "/") || component == "" {
		return q, http.StatusNotFound, Failure{Error: failPath, Text: "ask for " + control.SplitPath + "COMPONENT?from_site=SITE"}
	}
	if q, err = parse(u.RawQuery); err != nil {
		return q, http.StatusBadRequest, Failure{Error: failQuery, Text: err.Error()}
	}
	q.link.To = component
	if _, known := s.opts.Components[component]; !known {
		return q, http.StatusNotFound, Failure{Error: failComponent, Text: "no component of that name is configured", Components: s.components}
	}
	switch {
	case q.link.FromSite == "":
		return q, http.StatusBadRequest, Failure{Error: failQuery, Text: "from_site is needed: the site that calls come from", Sites: s.sites}
	case !s.atSite[q.link.FromSite]:
		return q, http.StatusNotFound, Failure{Error: failSite, Text: "from_site: no site of that name is configured", Sites: s.sites}
	}
	return q, 0, Failure{}
}

// parse reads a query. What it doesn't know it refuses: a misspelt wait would make
// a client ask all the time.
func parse(raw string) (q question, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fmt.Errorf("query: %w", err)
	}
	q.link.From = control.Outside
	for name, all := range values {
		if len(all) != 1 {
			return q, fmt.Errorf("%.40q: expected once", name)
		}
		switch v := all[0]; name {
		case "from_site":
			q.link.FromSite = v
		case "from":
			if q.link.From = v; !usable(v) {
				return q, fmt.Errorf("from: expected the name of a component, of 1 to %d bytes", control.MaxID)
			}
		case "wait":
			if q.wait, err = time.ParseDuration(v); err != nil || q.wait < 0 {
				return q, fmt.Errorf("wait: got %.40q, expected a time such as 30s, at most %v", v, MaxWait)
			}
			q.wait = min(q.wait, MaxWait)
		default:
			return q, fmt.Errorf("%.40q: expected from_site, from or wait", name)
		}
	}
	return q, nil
}
