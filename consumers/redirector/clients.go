package redirector

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// client is who has a rate: an address, or a token by its number from 1.
type client struct {
	address netip.Addr
	token   int
}

// onTheBus are all who ask over the bus: they are users of it already.
var onTheBus = client{token: -1}

// door knows who may come in, and who they are.
type door struct {
	digests [][sha256.Size]byte
	public  bool
	trusted []netip.Prefix
}

func newDoor(o *Options) *door {
	d := &door{public: o.Public, trusted: o.Trusted}
	for _, t := range o.Tokens {
		d.digests = append(d.digests, sha256.Sum256([]byte(t)))
	}
	return d
}

// enter says who a request is from, or the status with which it is refused.
func (d *door) enter(r *http.Request) (c client, refused int) {
	token := 0
	switch {
	case d.public:
	case len(d.digests) > 0:
		if token = d.token(r.Header.Get("Authorization")); token == 0 {
			return client{}, http.StatusUnauthorized
		}
	case !isLoopback(hostOf(r.Host)):
		// A page that a browser on this machine has open may name any host that
		// resolves to loopback; it has no business here.
		return client{}, http.StatusForbidden
	}
	if len(d.digests) > 1 && token > 0 {
		return client{token: token}, 0
	}
	return client{address: d.address(r)}, 0
}

// token returns the number of the token that was sent, 0 for none of ours. It
// compares digests, and all of them, so that the time taken tells nothing.
func (d *door) token(authorization string) (number int) {
	got, bearer := strings.CutPrefix(authorization, "Bearer ")
	sum := sha256.Sum256([]byte(got))
	for i := range d.digests {
		number |= (i + 1) * subtle.ConstantTimeCompare(sum[:], d.digests[i][:])
	}
	if !bearer {
		return 0
	}
	return number
}

// address is where a request comes from: the peer, or, where that is a trusted
// proxy, the last address in X-Forwarded-For that isn't one too. What can't be
// read there ends the list.
func (d *door) address(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at := peer.Addr().Unmap().WithZone("")
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for list := lines[i]; list != ""; {
			if !d.trusts(at) {
				return network(at)
			}
			last := list
			if comma := strings.LastIndexByte(list, ','); comma >= 0 {
				list, last = list[:comma], list[comma+1:]
			} else {
				list = ""
			}
			a, err := netip.ParseAddr(hostOf(strings.TrimSpace(last)))
			if err != nil {
				return network(at)
			}
			at = a.Unmap().WithZone("")
		}
	}
	return network(at)
}

func (d *door) trusts(a netip.Addr) bool {
	for _, p := range d.trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// network is what one client has: of IPv6 the first 64 bits are handed out whole.
func network(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// hostOf takes the port off, if there is one.
func hostOf(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}
