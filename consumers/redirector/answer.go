package redirector

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// Answer is where an owner is.
type Answer struct {
	// Owner is the id; Token stands for one that JSON can't carry because it is not
	// UTF-8: its subject token (DESIGN §3).
	Owner string `json:"owner,omitempty"`
	Token string `json:"token,omitempty"`
	Site  string `json:"site"`
	// URL is the site's, empty if the configuration has none.
	URL     string                `json:"url,omitempty"`
	Version uint64                `json:"version"`
	State   control.LocationState `json:"state"`
	Since   time.Time             `json:"since"`
	Pinned  bool                  `json:"pinned,omitempty"`
	// Age is how long ago, in seconds, the directory was in step with the bus.
	Age float64 `json:"age"`
}

// Failure is why there is no answer.
type Failure struct {
	Error string `json:"error"` // a word for programs
	Text  string `json:"text"`
	Owner string `json:"owner,omitempty"`
	Token string `json:"token,omitempty"`
	// Unknown is what applies to an owner without a location, if that is known here.
	Unknown *Default `json:"unknown,omitempty"`
	Age     *float64 `json:"age,omitempty"`
}

// Default is the site that serves owners without a location.
type Default struct {
	Site string `json:"site"`
	URL  string `json:"url,omitempty"`
}

// Batch is what many owners are asked for with.
type Batch struct {
	Owners []string `json:"owners,omitempty"`
	// Tokens are further owners, as their subject tokens.
	Tokens []string `json:"tokens,omitempty"`
}

// Answers are those to a Batch: of Owners, then of Tokens, in order. One without a
// location is a Failure.
type Answers struct {
	Age       float64 `json:"age"`
	Locations []any   `json:"locations"`
}

// The words of failures.
const (
	failUnknown     = "unknown-owner"
	failNotReady    = "not-ready"
	failTooOld      = "too-old"
	failNoURL       = "no-url"
	failLimited     = "too-many-requests"
	failPath        = "bad-path"
	failBody        = "bad-body"
	failMethod      = "method"
	failTooLarge    = "too-large"
	failUnavailable = "unavailable"
)

// Results of lookups, in metrics.
const (
	found   = "found"
	unknown = "unknown"
)

// age is how fresh the directory is at one instant.
type age struct {
	since     time.Duration
	connected bool
}

func (a age) stale() bool { return a.since > 0 }

// seconds are what a header says; never 0 when it is stale.
func (a age) seconds() int64 { return int64(math.Ceil(a.since.Seconds())) }

// json is to the millisecond.
func (a age) json() float64 { return math.Round(a.since.Seconds()*1e3) / 1e3 }

// fresh says how fresh the directory is, or the word for why it isn't to be
// believed.
func (r *Redirector) fresh() (age, string) {
	select {
	case <-r.opts.Directory.Ready():
	default:
		return age{}, failNotReady
	}
	var a age
	a.since, a.connected = r.opts.Directory.Freshness()
	if a.stale() {
		r.metrics.stale.Inc()
	}
	if r.opts.MaxAge > 0 && a.since > r.opts.MaxAge {
		return a, failTooOld
	}
	return a, ""
}

// locate looks an owner up.
func (r *Redirector) locate(owner string, a age) (Answer, bool) {
	l, known := r.opts.Directory.Get(owner)
	if !known {
		r.metrics.lookups.WithLabelValues(unknown).Inc()
		return Answer{}, false
	}
	r.metrics.lookups.WithLabelValues(found).Inc()
	out := Answer{
		Site: l.Site, URL: r.opts.Sites[l.Site], Version: l.Version, State: l.State, Since: l.Since, Pinned: l.Pinned, Age: a.json(),
	}
	out.Owner, out.Token = spell(owner)
	return out, true
}

// missing is the failure for an owner without a location.
func (r *Redirector) missing(owner string, a age) Failure {
	seconds := a.json()
	f := Failure{Error: failUnknown, Text: "the owner has no location: it was never moved, imported or pinned", Age: &seconds}
	f.Owner, f.Token = spell(owner)
	if d, ok := r.unknown(owner); ok {
		f.Unknown = &d
	}
	return f
}

func (r *Redirector) unknown(owner string) (Default, bool) {
	if r.opts.Unknown == nil {
		return Default{}, false
	}
	site, ok := r.opts.Unknown(owner)
	return Default{Site: site, URL: r.opts.Sites[site]}, ok
}

// spell returns an owner as JSON has it.
func spell(owner string) (id, token string) {
	if utf8.ValidString(owner) {
		return owner, ""
	}
	return "", subject.Encode(owner)
}

// owners returns those of a batch, or what is wrong with it.
func (b *Batch) owners(most int) ([]string, *Failure) {
	n := len(b.Owners) + len(b.Tokens)
	if n > most {
		return nil, &Failure{Error: failTooLarge, Text: "more than " + strconv.Itoa(most) + " owners"}
	}
	out := make([]string, 0, n)
	out = append(out, b.Owners...)
	for _, t := range b.Tokens {
		o, err := subject.Decode(t)
		if err != nil {
			return nil, &Failure{Error: failBody, Text: err.Error()}
		}
		out = append(out, o)
	}
	for _, o := range out {
		if len(o) > maxOwner {
			return nil, &Failure{Error: failBody, Text: "an owner of more than " + strconv.Itoa(maxOwner) + " bytes"}
		}
	}
	return out, nil
}

// all looks the owners of a batch up.
func (r *Redirector) all(owners []string, a age) Answers {
	out := Answers{Age: a.json(), Locations: make([]any, len(owners))}
	for i, o := range owners {
		if l, known := r.locate(o, a); known {
			out.Locations[i] = l
		} else {
			out.Locations[i] = r.missing(o, a)
		}
	}
	return out
}

// encode never fails: of the types here every value has a JSON form but NaN and
// infinite ages, which are no durations.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":"` + failUnavailable + `","text":"the answer can't be encoded"}`)
	}
	return append(b, '\n')
}
