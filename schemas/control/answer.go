package control

import (
	"fmt"
	"math"
	"net/url"
)

// MaxSplitServers is the most servers of a site in an answer.
const MaxSplitServers = 4096

// The pull API's words: what the called component's name follows in the path of a
// question, and headers of answers. HeaderSplitAge is for how many seconds the bus has
// been away, HeaderSplitServers a digest of where servers are.
const (
	SplitPath          = "/v1/split/"
	HeaderSplitAge     = "Penstock-Age"
	HeaderSplitServers = "Penstock-Servers"
)

// SplitAnswer is what GET /v1/split/{component} answers (DESIGN §4.2): where calls
// from a component at a site to another component go.
type SplitAnswer struct {
	Component string `json:"component"`
	// From is the calling component; "entry" are calls from outside.
	From     string `json:"from"`
	FromSite string `json:"from_site"`
	// Epoch is that of the table in force; 0 is the configured default's.
	Epoch uint64 `json:"epoch"`
	// Known is false if no table has these calls: then they stay at their site.
	Known  bool        `json:"known"`
	Ratios []SplitSite `json:"ratios"`
	// WritesAt is the site of all calls that write, which stands in Ratios too; "":
	// they go as others do.
	WritesAt string `json:"writes_at,omitempty"`
}

// SplitSite is a site's share, 0 to 1, and where the component is served there.
// The shares of an answer add up to 1.
type SplitSite struct {
	Site  string  `json:"site"`
	Share float64 `json:"share"`
	// Servers are absolute URLs, http or https, without query.
	Servers []string `json:"servers"`
}

// DecodeSplitAnswer reads an answer. The error names the field and what was
// expected, and wraps ErrUndecodable; unknown fields are ignored.
func DecodeSplitAnswer(body []byte) (*SplitAnswer, error) {
	a := new(SplitAnswer)
	if err := decode(body, "split", a); err != nil {
		return nil, err
	}
	c := checker{what: "split"}
	c.id("component", a.Component)
	c.id("from", a.From)
	c.id("from_site", a.FromSite)
	c.answered(a)
	if c.err != nil {
		return nil, c.err
	}
	return a, nil
}

func (c *checker) answered(a *SplitAnswer) {
	if len(a.Ratios) == 0 || len(a.Ratios) > MaxSplitSites+1 { // one more for writes
		c.fail("ratios", fmt.Sprint(len(a.Ratios), " sites"), fmt.Sprintf("1 to %d", MaxSplitSites+1))
		return
	}
	sum, sites := 0.0, make(map[string]bool, len(a.Ratios))
	for i, r := range a.Ratios {
		at := fmt.Sprintf("ratios[%d]", i)
		c.id(at+".site", r.Site)
		if !(r.Share >= 0 && r.Share <= 1) {
			c.fail(at+".share", fmt.Sprint(r.Share), "0 to 1")
		}
		if sites[r.Site] {
			c.fail(at+".site", r.Site, "each site once")
		}
		sites[r.Site] = true
		sum += r.Share
		if len(r.Servers) > MaxSplitServers {
			c.fail(at+".servers", fmt.Sprint(len(r.Servers)), fmt.Sprintf("at most %d", MaxSplitServers))
			return
		}
		for j, s := range r.Servers {
			if !ServerURL(s) {
				c.fail(fmt.Sprintf("%s.servers[%d]", at, j), s, "an absolute URL, http or https, without query")
			}
		}
	}
	if !(math.Abs(sum-1) <= shareTolerance) {
		c.fail("ratios", fmt.Sprint("a sum of ", sum), "a sum of 1")
	}
	if a.WritesAt != "" && !sites[a.WritesAt] {
		c.fail("writes_at", a.WritesAt, "one of the sites of ratios")
	}
}

// ServerURL reports whether a server can be written so: an absolute URL, http or
// https, with a host, and without user, query and fragment.
func ServerURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= MaxID && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Opaque == "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

func (a *SplitAnswer) canonical() *SplitAnswer {
	out := *a
	out.Ratios = make([]SplitSite, len(a.Ratios))
	for i, r := range a.Ratios {
		if r.Servers == nil {
			r.Servers = []string{}
		}
		out.Ratios[i] = r
	}
	return &out
}
