package accesslog

import (
	"bytes"
	"math"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"penstock/infra/errorkind"
	"penstock/infra/geo"
	"penstock/infra/pseudonym"
	"penstock/schemas/event"
)

// ClassBadRequest is the class of a row whose request field is not a request
// (DESIGN §3.2, P07).
const ClassBadRequest = "bad-request"

// Locator says where an address is; *geo.DB is one.
type Locator interface {
	Lookup(netip.Addr) (geo.Place, bool)
}

// Options of a Parser.
type Options struct {
	// Geo places the client; nil leaves lat and lon unknown.
	Geo Locator
	// Key of the user's hash; it must not be empty. The same key gives the
	// same users in every recording.
	Key []byte
	// OwnerDepth is how many segments of the path name the owner: 1 makes
	// /blog/2015/x.html the data of "blog", 2 of "blog/2015". A path with fewer
	// segments has them all, one with none ("/") has no owner. Defaults to 1.
	OwnerDepth int
	// Zone is that of times which name none. Defaults to UTC.
	Zone *time.Location
}

// Parser turns lines into requests.
type Parser struct {
	format   *Format
	opts     Options
	hasher   *pseudonym.Hasher
	variants []*variant // one for each shape

	clients [2]map[string]client // without, and with a port that is always there
	texts   map[string]string
	scratch []byte // a field without escapes
	owner   []byte // scratch
	row     rowState
	trace   func(c column, s *source, value []byte, outcome outcome) // of Explain
}

// rowState is what is known of a row beside its columns.
type rowState struct {
	total    int64 // event.NullInt if unknown
	timed    bool
	start    bool // the time is the request's start
	request  bool // a request line was there, whatever it held
	method   bool
	methodOK bool
	connect  bool
	target   bool
	targetOK bool
	anyField bool // a field of the request stands on the line
	asked    bool // one that only requests have
	owner    bool // set by a column of its own
	nobody   bool // the mapping says that there is no user
	bad      bool
}

// client is what is known of an address.
type client struct {
	user     string
	lat, lon float32
}

// maxCached bounds each of a parser's caches; a full one begins anew. What is
// cached follows from its key alone, so that results don't depend on it.
const maxCached = 1 << 16

// NewParser returns a parser of the format. The error wraps ErrOption.
func NewParser(f *Format, o Options) (*Parser, error) { return newParser(f, o, true) }

// newParser leaves out the shapes that only hold for a format that is named,
// unless it is.
func newParser(f *Format, o Options, named bool) (*Parser, error) {
	hasher, err := pseudonym.New(o.Key)
	if err != nil {
		return nil, errorkind.Errorf(ErrOption, "no key for the hash of client addresses: %w", err)
	}
	if o.OwnerDepth < 0 {
		return nil, errorkind.Errorf(ErrOption, "owner depth %d, expected 1 or more", o.OwnerDepth)
	}
	if o.OwnerDepth == 0 {
		o.OwnerDepth = 1
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	p := &Parser{
		format: f, opts: o, hasher: hasher,
		clients: newClients(), texts: make(map[string]string),
	}
	for _, s := range f.shapes {
		if s.named && !named {
			continue
		}
		v, err := newVariant(f, s)
		if err != nil {
			return nil, err
		}
		p.variants = append(p.variants, v)
	}
	return p, nil
}

// Format returns the parser's format.
func (p *Parser) Format() *Format { return p.format }

// Parse fills r from a line without its line end. It returns ErrHeader for a
// line that holds no row, and a *LineError if the line is malformed; r is then
// of no use. Strings in r stay valid; nothing of line is kept. For formats
// without expressions it allocates only for a text that is new, such as a
// client, an owner or an id, or for an error.
func (p *Parser) Parse(line []byte, r *event.Request) error {
	if len(p.variants) > 1 {
		for _, v := range p.variants {
			v.quiet = true
			_, err := p.parse(v, line, r)
			if v.quiet = false; err == nil || err == ErrHeader { //nolint:errorlint // parse returns it bare.
				return err
			}
		}
	}
	var first error
	progress := -1
	for _, v := range p.variants {
		n, err := p.parse(v, line, r)
		if err == nil {
			return nil
		}
		// Of several shapes the one that came furthest says what is wrong.
		if n > progress {
			first, progress = err, n
		}
	}
	return first
}

// headerProgress is further than any field: a header is one whatever the other
// shapes say.
const headerProgress = math.MaxInt

// parse tries one shape; n is how far it came, in fields.
func (p *Parser) parse(v *variant, line []byte, r *event.Request) (n int, err error) {
	n, fault := v.cut(line)
	if fault == errHeader {
		return headerProgress, ErrHeader
	}
	if fault != nil {
		return n, p.explainFault(v, line, n, fault)
	}
	if v.bound.only != nil {
		if fault := v.excluded(line); fault != nil {
			return n, fault
		}
	}
	for i := range v.checks {
		if c := &v.checks[i]; !c.element.check(v.fields[c.slot]) {
			return n, p.explainFault(v, line, n, nil)
		}
	}
	if !p.fill(v, r) {
		return n, p.explainFault(v, line, n, nil)
	}
	return n, p.finish(v, line, r)
}

// finish adds what follows from several columns.
func (p *Parser) finish(v *variant, line []byte, r *event.Request) error {
	row, b := &p.row, v.bound
	if b.request || b.method || b.target {
		if b.needs && !row.anyField || b.guessed && !row.asked {
			return lineError("request", 1, line, "a request, or its target with its method or status")
		}
		if !row.request {
			p.finishParts(b)
		}
		if row.bad {
			r.Class, r.Op = ClassBadRequest, event.Read
			if !row.owner {
				r.Owner = ""
			}
		}
	}
	if row.total != event.NullInt {
		p.finishDelays(r)
	}
	if row.start {
		for _, us := range [...]int64{r.Wait, r.Service, r.Network} {
			if us != event.NullInt {
				r.Time += us
			}
		}
		if !isTime(r.Time) {
			return lineError("time", 1, line, "a time between 1900 and 2200 at the request's end")
		}
	}
	return nil
}

// finishParts judges a request whose method and target are fields of their own.
func (p *Parser) finishParts(b *bound) {
	row := &p.row
	switch {
	case b.method && (!row.method || !row.methodOK), b.target && (!row.target || !row.targetOK):
		row.bad = true
	case !b.method && !b.target:
		row.bad = true // a request field that holds none
	}
}

// finishDelays shares out the whole time: what wait and service leave is the
// network's. Of a whole alone all is service (docs/logs.md).
func (p *Parser) finishDelays(r *event.Request) {
	total := p.row.total
	or0 := func(us int64) int64 {
		if us == event.NullInt {
			return 0
		}
		return us
	}
	switch {
	case r.Service == event.NullInt:
		r.Service = total - or0(r.Wait) - or0(r.Network)
	case r.Network == event.NullInt:
		r.Network = total - or0(r.Wait) - r.Service
	}
}

// intern returns a text that is kept, as a column may hold it: what is not
// printable is written as in a URL.
func (p *Parser) intern(b []byte) string {
	s, ok := p.texts[string(b)]
	if !ok {
		s = printable(b)
		if len(b) > event.MaxID {
			// The row will be refused: such a string isn't worth keeping.
			return s
		}
		if len(p.texts) >= maxCached {
			clear(p.texts)
		}
		p.texts[string(b)] = s
	}
	return s
}

// printable returns a text that is valid UTF-8 without control characters.
func printable(b []byte) string {
	if bytes.IndexFunc(b, isUnprintable) >= 0 {
		b = appendPrintable(nil, b)
	}
	return string(b)
}

func isUnprintable(c rune) bool { return c < ' ' || c == 0x7f || c == utf8.RuneError }

func newClients() [2]map[string]client {
	return [2]map[string]client{make(map[string]client), make(map[string]client)}
}

// client returns user and place of an address or host name. A dash and a Unix
// socket are no client.
func (p *Parser) client(host []byte, port bool) client {
	known := p.clients[0]
	if port {
		known = p.clients[1]
	}
	c, ok := known[string(host)]
	if ok {
		return c
	}
	nan := float32(math.NaN())
	c = client{lat: nan, lon: nan}
	if s := string(host); s != "-" && s != "" && !strings.HasPrefix(s, "unix:") {
		s = withoutPort(s, port)
		c.user = p.hasher.Client(s)
		if addr, err := netip.ParseAddr(s); err == nil && p.opts.Geo != nil {
			if at, found := p.opts.Geo.Lookup(addr.Unmap().WithZone("")); found {
				c.lat, c.lon = float32(at.Lat), float32(at.Lon)
			}
		}
	}
	if len(host) <= event.MaxID {
		if len(known) >= maxCached {
			clear(known)
		}
		known[string(host)] = c
	}
	return c
}

// withoutPort takes brackets and a port off an address. An IPv6 address without
// brackets has a port only where it is known to have one.
func withoutPort(s string, always bool) string {
	if strings.HasPrefix(s, "[") {
		if inner, _, ok := strings.Cut(s[1:], "]"); ok {
			return inner
		}
	}
	n := strings.LastIndexByte(s, ':')
	if n <= 0 {
		return s
	}
	if _, numeric := digits([]byte(s[n+1:])); !numeric || len(s)-n > len(":65535") || n == len(s)-1 {
		return s
	}
	if always || strings.IndexByte(s, ':') == n {
		if _, err := netip.ParseAddr(s[:n]); err == nil || always {
			return s[:n]
		}
	}
	return s
}
