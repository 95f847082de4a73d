package links

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"penstock/schemas/sphere"
)

// Place is an end of links.
type Place struct {
	Name     string
	Lat, Lon float64 // degrees
	Address  string  // HOST:PORT, where it is reached from next to it
}

// Mesh is a link from each place to each other one.
type Mesh struct {
	places []Place
	links  map[[2]string]*Link // by from, to
	dialer net.Dialer
}

// Between is the round trip between two places, by their distance. It is 0 from a
// place to itself.
func Between(a, b Place) time.Duration {
	if a.Name == b.Name {
		return 0
	}
	return time.Duration(sphere.RTT(sphere.Km(a.Lat, a.Lon, b.Lat, b.Lon)) * float64(time.Millisecond))
}

// Connect opens the links between places, each with the round trip that roundTrip
// says: [Between] is that of their distance.
func Connect(log zerolog.Logger, roundTrip func(a, b Place) time.Duration, places ...Place) (*Mesh, error) {
	m := &Mesh{places: places, links: map[[2]string]*Link{}}
	for _, from := range places {
		for _, to := range places {
			if from.Name == to.Name {
				continue
			}
			l, err := Open(Options{Name: from.Name + " to " + to.Name, To: to.Address, OneWay: roundTrip(from, to) / 2, Logger: log})
			if err != nil {
				m.Close()
				return nil, err
			}
			m.links[[2]string{from.Name, to.Name}] = l
		}
	}
	return m, nil
}

// Address is where a place reaches another: the link between them, or the place's
// own address from next to it.
func (m *Mesh) Address(from, to string) (string, error) {
	if l, ok := m.links[[2]string{from, to}]; ok {
		return l.Address(), nil
	}
	for _, p := range m.places {
		if p.Name == to && from == to {
			return p.Address, nil
		}
	}
	return "", fmt.Errorf("%s to %s: %w", from, to, ErrNoLink)
}

// Dial returns a dialler as it is at a place: an address of another place is
// reached over the link, any other as it is.
func (m *Mesh) Dial(from string) func(ctx context.Context, network, address string) (net.Conn, error) {
	over := map[string]string{}
	for _, p := range m.places {
		if l, ok := m.links[[2]string{from, p.Name}]; ok {
			over[p.Address] = l.Address()
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if link, ok := over[address]; ok {
			address = link
		}
		return m.dialer.DialContext(ctx, network, address)
	}
}

// Close closes all links.
func (m *Mesh) Close() {
	for _, l := range m.links {
		l.Close()
	}
}
