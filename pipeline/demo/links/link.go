package links

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Options of a link.
type Options struct {
	Name string
	// Listen is HOST:PORT; empty is any port of 127.0.0.1.
	Listen string
	// To is the address that bytes are passed on to.
	To string
	// OneWay is how much later bytes arrive, either way; whole ms.
	OneWay time.Duration
	Logger zerolog.Logger
}

// Link is an open link. It is safe for concurrent use.
type Link struct{ proxy *toxiproxy.Proxy }

// Open listens and passes on.
func Open(o Options) (*Link, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	// Links say of each connection that it came; that is of interest to nobody.
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), o.Logger.Level(zerolog.ErrorLevel))
	l := &Link{proxy: toxiproxy.NewProxy(server, o.Name, o.Listen, o.To)}
	for _, way := range []string{"upstream", "downstream"} {
		shape, err := json.Marshal(map[string]any{
			"type": "latency", "stream": way, "attributes": map[string]int64{"latency": o.OneWay.Round(time.Millisecond).Milliseconds()},
		})
		if err != nil {
			return nil, fmt.Errorf("link %s: %w", o.Name, err)
		}
		if _, err := l.proxy.Toxics.AddToxicJson(bytes.NewReader(shape)); err != nil {
			return nil, fmt.Errorf("link %s: %w", o.Name, err)
		}
	}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("link %s: %w", o.Name, err)
	}
	return l, nil
}

// Address is where the link listens.
func (l *Link) Address() string { return l.proxy.Listen }

// Close cuts the connections and stops listening. It may be called twice.
func (l *Link) Close() { l.proxy.Stop() }
