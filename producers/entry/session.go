package entry

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"time"

	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
)

// checkSession refuses names that no cookie or header has.
func (o *Options) checkSession() error {
	s := &o.Session
	switch {
	case s.Cookie != "" && s.Header != "":
		return fmt.Errorf("a session by cookie and by header, expected one: %w", ErrOption)
	case s.Cookie != "" && !strict.IsToken(s.Cookie):
		return fmt.Errorf("cookie %q of sessions is not the name of one: %w", s.Cookie, ErrOption)
	case s.Header != "" && (!strict.IsToken(s.Header) || ofHop(textproto.CanonicalMIMEHeaderKey(s.Header))):
		return fmt.Errorf("header %q of sessions is not the name of one that clients can send: %w", s.Header, ErrOption)
	case s.TTL < 0:
		return fmt.Errorf("sessions of %v: %w", s.TTL, ErrOption)
	}
	s.Header = textproto.CanonicalMIMEHeaderKey(s.Header)
	return nil
}

// headers are those that say which session a request is of.
func (s *Session) headers() []string {
	switch {
	case s.Cookie != "":
		return []string{"Cookie"}
	case s.Header != "":
		return []string{s.Header}
	}
	return nil
}

// sessionOf makes the cookie of a component that clients from outside reach.
func (e *Entry) sessionOf(c *component) error {
	if e.o.Session.Cookie == "" || e.o.Shares == nil || c != e.own && !c.public {
		return nil
	}
	c.cookie = e.o.Session.Cookie
	if c != e.own {
		if c.cookie += "-" + c.name; !strict.IsToken(c.cookie) {
			return fmt.Errorf("its name can't be part of a cookie's, which keeps its sessions: %w", ErrOption)
		}
	}
	for i, secure := range [...]string{"", "; Secure"} {
		for _, s := range e.o.Sites {
			if !isCookieValue(s.Name) {
				return fmt.Errorf("site %q can't be a cookie's value, which keeps its sessions: %w", s.Name, ErrOption)
			}
			v := c.cookie + "=" + s.Name + "; Path=/"
			if e.o.Session.TTL > 0 {
				v += "; Max-Age=" + strconv.FormatInt(int64(max(e.o.Session.TTL/time.Second, 1)), 10)
			}
			c.cookies[i] = append(c.cookies[i], v+"; HttpOnly; SameSite=Lax"+secure)
		}
	}
	return nil
}

// isCookieValue reports whether s is one as it stands (RFC 6265 §4.1.1).
func isCookieValue(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c > '~', c == '"', c == ',', c == ';', c == '\\':
			return false
		}
	}
	return true
}

// session says what is known of a client's session: its site, or a key of its own.
// What names no site is a key in a header, and nothing in a cookie.
func (x *exchange) session() (site, key string) {
	e := x.e
	var v string
	switch {
	case e.o.Session.Header != "":
		v = first(x.out.Header, e.o.Session.Header)
	case x.to.cookie != "" && !x.client.door.internal:
		v = identify.Cookie(x.out.Header, x.to.cookie)
	default:
		return "", ""
	}
	if _, ok := e.router.index[v]; ok {
		return v, ""
	}
	if e.o.Session.Header == "" {
		if v != "" {
			e.m.ignored("session", "site")
		}
		return "", ""
	}
	return "", v
}

// beginSession tells the client in which site its session is, if it has none there yet.
func (x *exchange) beginSession(h http.Header) {
	c := &x.split
	if !c.choice.Known || c.keyed || c.choice.Site == c.session || x.at.site != c.chosen {
		return
	}
	// Where all writes go is no session's site unless reads go there too.
	if _, stays := x.e.o.Shares.Stay(x.link(), c.choice.Site); !stays {
		return
	}
	switch name := x.e.o.Session.Header; {
	case name != "":
		h[name] = []string{c.choice.Site}
	case x.to.cookie != "" && !x.client.door.internal:
		secure := 0
		if x.client.tls || x.r.TLS != nil {
			secure = 1
		}
		h["Set-Cookie"] = append(slices.Clip(h["Set-Cookie"]), x.to.cookies[secure][c.chosen])
	}
}
