package door

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"penstock/infra/address"
)

// Client is who has a rate: an address, or a token by its number from 1.
type Client struct {
	address netip.Addr
	token   int
}

// OnTheBus are all who ask over the bus: they are users of it already, and have no
// rate of their own.
var OnTheBus = Client{token: -1}

// Door knows who may come in, and who they are. It is not changed after New.
type Door struct {
	digests [][sha256.Size]byte
	public  bool
	trusted address.Proxies
	// forwardedOnly is Options.ForwardedOnly.
	forwardedOnly bool
}

// New returns a door.
func New(o Options) *Door {
	d := &Door{public: o.Public, trusted: o.Trusted, forwardedOnly: o.ForwardedOnly}
	for _, t := range o.Tokens {
		d.digests = append(d.digests, sha256.Sum256([]byte(t)))
	}
	return d
}

// Enter says who a request is from, or the status with which it is refused.
func (d *Door) Enter(r *http.Request) (c Client, refused int) {
	token := 0
	switch {
	case d.public:
	case len(d.digests) > 0:
		if token = d.token(r.Header.Get("Authorization")); token == 0 {
			return Client{}, http.StatusUnauthorized
		}
	case !address.IsLoopback(address.Host(r.Host)):
		// A page that a browser on this machine has open may name any host that
		// resolves to loopback; it has no business here.
		return Client{}, http.StatusForbidden
	}
	if len(d.digests) > 1 && token > 0 {
		return Client{token: token}, 0
	}
	return Client{address: d.address(r)}, 0
}

// Proves says whether an Authorization has a token of the door's, or the door asks for
// none. It is for requests of gRPC: no page of a browser makes them, so that whom they
// name does not matter.
func (d *Door) Proves(authorization string) bool {
	return d.public || len(d.digests) == 0 || d.token(authorization) > 0
}

// token returns the number of the token that was sent, 0 for none of ours. It
// compares digests, and all of them, so that the time taken tells nothing.
func (d *Door) token(authorization string) (number int) {
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
func (d *Door) address(r *http.Request) netip.Addr {
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
