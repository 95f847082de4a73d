package entry

import (
	"context"
	"net/http"
	"net/netip"
	"sync"

	"penstock/producers/entry/strict"
)

// client is what is known of a connection's other end: it is found out once.
type client struct {
	address   netip.Addr
	trusted   bool
	tls       bool
	forwarded []string // the address, as X-Forwarded-For has it
	conn      *strict.Conn
	door      *door

	once  sync.Once
	place position // of address, once it was asked for
}

// position is where somebody is, in degrees.
type position struct {
	lat, lon float32
	known    bool
}

type clientKey struct{}

func (d *door) newClient(remote string, conn *strict.Conn, tls bool) *client {
	c := &client{conn: conn, tls: tls, door: d}
	if a, err := netip.ParseAddrPort(remote); err == nil {
		c.address = a.Addr().Unmap().WithZone("")
		c.trusted = d.e.proxies.Trust(c.address)
		c.forwarded = []string{c.address.String()}
	} else {
		c.forwarded = []string{"unknown"}
	}
	return c
}

// clientOf returns the client of a request's connection. A request that came by
// another server than the entry point's own has one to itself.
func (e *Entry) clientOf(r *http.Request) *client {
	if c, ok := r.Context().Value(clientKey{}).(*client); ok {
		return c
	}
	return e.public.newClient(r.RemoteAddr, nil, r.TLS != nil)
}

func withClient(ctx context.Context, c *client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// position says where an address is.
func (e *Entry) position(c *client, a netip.Addr) position {
	if e.o.Geo == nil || !a.IsValid() {
		return position{}
	}
	if a != c.address {
		return e.locate(a)
	}
	c.once.Do(func() { c.place = e.locate(a) })
	return c.place
}

func (e *Entry) locate(a netip.Addr) position {
	at, known := e.o.Geo.Lookup(a)
	if !known {
		return position{}
	}
	return position{lat: float32(at.Lat), lon: float32(at.Lon), known: true}
}
