package identify

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"penstock/infra/pseudonym"
	"penstock/producers/entry/strict"
	"penstock/schemas/event"
)

// Rule is one way to find a value. Exactly one of Path, Header, Cookie, Claim
// and Address is set.
type Rule struct {
	// Path is a pattern with the name of what is looked for in braces.
	Path string
	// Header is the name of a header; of one that comes twice the first counts.
	Header string
	// Cookie is the name of a cookie.
	Cookie string
	// Claim is the name of a claim of the token: a string or a number. Dots go
	// into objects where there is no claim of the whole name.
	Claim string
	// Address takes the client's address. It is always hashed.
	Address bool
	// Hash replaces the value by its pseudonym.
	Hash bool
}

// Request is what rules look at.
type Request struct {
	// Path in its normal form.
	Path   string
	Header http.Header
	// Claims of the token; nil if there is none that counts.
	Claims Claims
	// Address of the client; the zero Addr if it is not known.
	Address netip.Addr
}

type rule struct {
	Rule
	pattern *Pattern
}

// Set finds one kind of value by its rules.
type Set struct {
	rules  []rule
	hasher *pseudonym.Hasher
	claims bool
}

// Compile makes a set that looks for name ("owner", "user"). The hasher may be
// nil if no rule needs one. The error wraps ErrRule and names the rule.
func Compile(name string, rules []Rule, hasher *pseudonym.Hasher) (*Set, error) {
	s := &Set{hasher: hasher}
	for i, r := range rules {
		given := 0
		for _, set := range []bool{r.Path != "", r.Header != "", r.Cookie != "", r.Claim != "", r.Address} {
			if set {
				given++
			}
		}
		if given != 1 {
			return nil, fmt.Errorf("%s rule %d: expected one of path, header, cookie, claim and address: %w", name, i+1, ErrRule)
		}
		if (r.Hash || r.Address) && hasher == nil {
			return nil, fmt.Errorf("%s rule %d: no key to hash with: %w", name, i+1, ErrRule)
		}
		if err := checkNames(r); err != nil {
			return nil, fmt.Errorf("%s rule %d: %w", name, i+1, err)
		}
		c := rule{Rule: r}
		if r.Path != "" {
			var err error
			if c.pattern, err = CompilePattern(r.Path, name); err != nil {
				return nil, fmt.Errorf("%s rule %d: %w", name, i+1, err)
			}
			if !c.pattern.Captures() {
				return nil, fmt.Errorf("%s rule %d: path %q has no {%s}: %w", name, i+1, r.Path, name, ErrRule)
			}
		}
		c.Header = textproto.CanonicalMIMEHeaderKey(r.Header)
		s.claims = s.claims || r.Claim != ""
		s.rules = append(s.rules, c)
	}
	return s, nil
}

// checkNames refuses names that no header or cookie has, and headers that are taken
// off before rules look at them.
func checkNames(r Rule) error {
	switch {
	case r.Header != "" && !strict.IsToken(r.Header):
		return fmt.Errorf("header %q is not the name of one: %w", r.Header, ErrRule)
	case len(r.Header) > len(ours) && strings.EqualFold(r.Header[:len(ours)], ours):
		return fmt.Errorf("header %q is Penstock's own, which clients can't send: %w", textproto.CanonicalMIMEHeaderKey(r.Header), ErrRule)
	case r.Cookie != "" && !strict.IsToken(r.Cookie):
		return fmt.Errorf("cookie %q is not the name of one: %w", r.Cookie, ErrRule)
	}
	return nil
}

// ours begins the names of headers that entry points tell each other.
const ours = "Penstock-"

// NeedsClaims reports whether a rule looks at a token.
func (s *Set) NeedsClaims() bool { return s.claims }

// Headers are the headers that rules look at.
func (s *Set) Headers() []string {
	var out []string
	for _, r := range s.rules {
		switch {
		case r.Header != "":
			out = append(out, r.Header)
		case r.Cookie != "":
			out = append(out, "Cookie")
		case r.Claim != "":
			out = append(out, "Authorization")
		}
	}
	return out
}

// Find returns the value of the first rule that yields one, "" if none does.
// unusable says that a rule before it yielded what can't be an id.
func (s *Set) Find(r *Request) (value string, unusable bool) {
	for i := range s.rules {
		switch v := s.rules[i].value(r); {
		case s.rules[i].Address:
			if r.Address.IsValid() {
				return s.hasher.Address(r.Address), unusable
			}
		case v == "":
		case strings.ContainsFunc(v, unicode.IsControl) || s.rules[i].pattern != nil && doubtful(r.Path):
			unusable = true
		case s.rules[i].Hash:
			return s.hasher.Text(v), unusable
		case len(v) <= event.MaxID && utf8.ValidString(v):
			return v, unusable
		default:
			unusable = true
		}
	}
	return "", unusable
}

// value is what the rule takes, as it stands in the request; of an address nothing.
func (r *rule) value(q *Request) string {
	var v string
	switch {
	case r.pattern != nil:
		v, _ = r.pattern.Match(q.Path)
		v = decoded(v)
	case r.Header != "":
		if all := q.Header[r.Header]; len(all) > 0 {
			v = all[0]
		}
	case r.Cookie != "":
		v = Cookie(q.Header, r.Cookie)
	case r.Claim != "":
		v = q.Claims.text(r.Claim)
	}
	return v
}

// decoded undoes all escapes of what was taken from a path: an id is the same
// whether a client escapes what it need not, and the same in a path as in a header.
func decoded(v string) string {
	if strings.IndexByte(v, '%') < 0 {
		return v
	}
	if id, err := url.PathUnescape(v); err == nil {
		return id
	}
	return v
}

// Cookie returns the value of the first cookie of that name, "" if there is none
// (RFC 6265 §5.4: the one with the longest path comes first).
func Cookie(h http.Header, name string) string {
	for _, line := range h["Cookie"] {
		for len(line) > 0 {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			n, v, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok || n != name {
				continue
			}
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			return v
		}
	}
	return ""
}
