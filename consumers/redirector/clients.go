package redirector

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"penstock/infra/address"
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
	trusted address.Proxies
	// forwardedOnly is Options.ForwardedOnly.
	forwardedOnly bool
}

func newDoor(o *Options) *door {
	d := &door{public: o.Public, trusted: o.Trusted, forwardedOnly: o.ForwardedOnly}
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
	case !address.IsLoopback(address.Host(r.Host)):
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

// address is where a request comes from: the peer, or whom a trusted proxy names.
func (d *door) address(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at := peer.Addr().Unmap().WithZone("")
	if d.trusted.Trust(at) {
		at = d.trusted.Client(r.Header, at, d.forwardedOnly)
	}
	return network(at)
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
