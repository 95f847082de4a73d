package accesslog

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"net/netip"
	"strings"

	"penstock/infra/geo"
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
}

// Parser turns lines into requests.
type Parser struct {
	format *Format
	opts   Options
	mac    hash.Hash

	at      [numFields]span
	clients map[string]client
	owners  map[string]string
	request []byte // scratch: the request field without escapes
	owner   []byte // scratch
	sum     [sha256.Size]byte
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
func NewParser(f *Format, o Options) (*Parser, error) {
	if len(o.Key) == 0 {
		return nil, fmt.Errorf("no key for the hash of client addresses: %w", ErrOption)
	}
	if o.OwnerDepth < 0 {
		return nil, fmt.Errorf("owner depth %d, expected 1 or more: %w", o.OwnerDepth, ErrOption)
	}
	if o.OwnerDepth == 0 {
		o.OwnerDepth = 1
	}
	return &Parser{
		format: f, opts: o, mac: hmac.New(sha256.New, o.Key),
		clients: make(map[string]client), owners: make(map[string]string),
	}, nil
}

// Format returns the parser's format.
func (p *Parser) Format() *Format { return p.format }

// Parse fills r from a line without its line end. It returns a *LineError if
// the line is malformed; r is then of no use. Strings in r stay valid; nothing
// of line is kept. It allocates only for a client or an owner that is new, or
// for an error.
func (p *Parser) Parse(line []byte, r *event.Request) error {
	f := p.format
	n, next := f.match(line, &p.at)
	if n < len(f.elements) || next < len(line) {
		return p.explain(line, n, next)
	}
	t, ok := parseTime(p.field(line, Time))
	if !ok || !isTime(t) {
		return p.explain(line, n, next)
	}
	*r = event.NewRequest(t)
	if f.has[Status] {
		if r.Status, ok = parseStatus(p.field(line, Status)); !ok {
			return p.explain(line, n, next)
		}
	}
	if r.Bytes, ok = parseBytes(p.field(line, Bytes)); !ok || r.Bytes > event.MaxRequestBytes {
		return p.explain(line, n, next)
	}
	if f.has[Login] && !isLogin(p.field(line, Login)) || f.has[Host] && !isHost(p.field(line, Host)) ||
		f.has[Ident] && len(p.field(line, Ident)) == 0 {
		return p.explain(line, n, next)
	}
	if f.has[Host] {
		c := p.client(p.field(line, Host))
		r.User, r.Lat, r.Lon = c.user, c.lat, c.lon
	}
	p.fillRequest(p.field(line, Request), r)
	return nil
}

func (p *Parser) field(line []byte, f Field) []byte {
	return line[p.at[f].from:p.at[f].to]
}

// explain makes the error of a line of which n elements have the right shape:
// the first of them whose value is wrong, else the element after them.
func (p *Parser) explain(line []byte, n, next int) *LineError {
	for _, e := range p.format.elements[:n] {
		b, ok, want := p.field(line, e.field), true, expected[e.field]
		switch e.field {
		case Host:
			ok = isHost(b)
		case Ident:
			ok = len(b) > 0
		case Login:
			ok = isLogin(b)
		case Time:
			var t int64
			if t, ok = parseTime(b); ok && !isTime(t) {
				ok, want = false, "a time between 1900 and 2200"
			}
		case Status:
			_, ok = parseStatus(b)
		case Bytes:
			var n int64
			if n, ok = parseBytes(b); ok && n > event.MaxRequestBytes {
				ok, want = false, fmt.Sprintf("at most %d bytes", int64(event.MaxRequestBytes))
			}
		}
		if !ok {
			return mismatch(e.field, line[:p.at[e.field].to], p.at[e.field].from, want)
		}
	}
	return p.format.notMatched(line, n, next)
}

// fillRequest sets op and owner, or the class of a request that is none.
func (p *Parser) fillRequest(field []byte, r *event.Request) {
	if bytes.IndexByte(field, '\\') >= 0 {
		p.request = unescape(p.request[:0], field)
		field = p.request
	}
	req, ok := parseRequest(field)
	if !ok {
		r.Class = ClassBadRequest
		return
	}
	r.Op = req.op
	p.owner = ownerOf(p.owner[:0], req.path, p.opts.OwnerDepth)
	if len(p.owner) > 0 {
		r.Owner = p.intern(p.owner)
	}
}

func (p *Parser) intern(b []byte) string {
	s, ok := p.owners[string(b)]
	if !ok {
		s = string(b)
		if len(b) > event.MaxID {
			// The row will be refused: such a string isn't worth keeping.
			return s
		}
		if len(p.owners) >= maxCached {
			clear(p.owners)
		}
		p.owners[s] = s
	}
	return s
}

// client returns user and place of an address or host name. A dash and a Unix
// socket are no client.
func (p *Parser) client(host []byte) client {
	c, ok := p.clients[string(host)]
	if ok {
		return c
	}
	nan := float32(math.NaN())
	c = client{lat: nan, lon: nan}
	if s := string(host); s != "-" && s != "unix:" {
		addr, err := netip.ParseAddr(s)
		if err == nil {
			// One client is one user however its address is written.
			addr = addr.Unmap().WithZone("")
			s = addr.String()
		} else {
			s = strings.ToLower(s)
		}
		c.user = p.hash(s)
		if err == nil && p.opts.Geo != nil {
			if at, known := p.opts.Geo.Lookup(addr); known {
				c.lat, c.lon = float32(at.Lat), float32(at.Lon)
			}
		}
	}
	if len(host) <= event.MaxID {
		if len(p.clients) >= maxCached {
			clear(p.clients)
		}
		p.clients[string(host)] = c
	}
	return c
}

// hash is HMAC-SHA256 cut to 128 bits, in hex: nobody without the key can try
// out the four billion addresses.
func (p *Parser) hash(addr string) string {
	p.mac.Reset()
	p.mac.Write([]byte(addr))
	return hex.EncodeToString(p.mac.Sum(p.sum[:0])[:16])
}
