package bus

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// errDialling is what a patient dialer answers while it has no connection yet.
var errDialling = errors.New("not connected yet")

// dialer makes the connections of a patient bus in the background. The client
// library dials with its lock held, and everything that is called on it then
// waits; an address that swallows packets would hold up the start of a service
// for seconds. So each call returns at once, with the connection that an earlier
// one has begun, or with errDialling.
type dialer struct {
	inner  nats.CustomDialer // nil: plain TCP
	failed func(error)
	ctx    context.Context
	stop   context.CancelFunc

	mu    sync.Mutex
	going map[string]bool
	there map[string]net.Conn
}

// patientDialer puts a dialer in front of the one that the options have so far.
func patientDialer(failed func(error)) nats.Option {
	return func(o *nats.Options) error {
		d := &dialer{
			inner: o.CustomDialer, failed: failed,
			going: map[string]bool{}, there: map[string]net.Conn{},
		}
		d.ctx, d.stop = context.WithCancel(context.Background())
		o.CustomDialer = d
		closed := o.ClosedCB
		o.ClosedCB = func(nc *nats.Conn) {
			d.close()
			if closed != nil {
				closed(nc)
			}
		}
		return nil
	}
}

// Dial returns the connection to an address if there is one by now. Otherwise
// one is under way afterwards.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := network + " " + address
	if c, ok := d.there[key]; ok {
		delete(d.there, key)
		return c, nil
	}
	if err := d.ctx.Err(); err != nil {
		return nil, err
	}
	if !d.going[key] {
		d.going[key] = true
		go d.dial(network, address, key)
	}
	return nil, errDialling
}

func (d *dialer) dial(network, address, key string) {
	ctx, cancel := context.WithTimeout(d.ctx, awayTimeout)
	defer cancel()
	var c net.Conn
	var err error
	if d.inner != nil {
		c, err = d.inner.Dial(network, address)
	} else {
		c, err = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	}
	d.mu.Lock()
	delete(d.going, key)
	if err == nil && d.ctx.Err() != nil {
		_ = c.Close() // nobody wants it any more
	} else if err == nil {
		d.there[key] = c
	}
	d.mu.Unlock()
	if err != nil && d.ctx.Err() == nil {
		d.failed(err)
	}
}

// close ends what is under way and closes what was not fetched.
func (d *dialer) close() {
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.there {
		_ = c.Close() // nothing was sent on it
	}
	clear(d.there)
}
