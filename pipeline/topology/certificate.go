package topology

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// lookAtFiles is how often the files of a certificate are looked at, while anybody
// connects.
const lookAtFiles = 10 * time.Second

// certificate is one whose files may be replaced while it is served, as those that
// renew themselves are. Files that are no pair, such as half of a new one, change
// nothing.
type certificate struct {
	cert, key string
	clock     clock.Clock
	log       zerolog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	files  [2]stamp // of the pair, or of what was refused since
	looked time.Time
}

// stamp tells whether a file was replaced.
type stamp struct {
	changed time.Time
	size    int64
}

// newCertificate reads the files.
func newCertificate(cert, key string, c clock.Clock, log zerolog.Logger) (*certificate, error) {
	out := &certificate{cert: cert, key: key, clock: c, log: log, looked: c.Now()}
	out.files = out.stamps()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	out.pair = &pair
	return out, nil
}

// get is for tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now(); now.Sub(c.looked) >= lookAtFiles {
		c.looked = now
		c.renew()
	}
	return c.pair, nil
}

// renew reads the files if they were replaced; the lock is held.
func (c *certificate) renew() {
	files := c.stamps()
	if files == c.files {
		return
	}
	c.files = files // taken before they are read: what changes meanwhile is seen the next time
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.log.Error().Err(err).Str("cert", c.cert).Msg("the new certificate can't be used: the one before is served on")
		return
	}
	c.pair = &pair
	c.log.Info().Str("cert", c.cert).Time("until", pair.Leaf.NotAfter).Msg("a new certificate is served")
}

// stamps are those of the files; a file that can't be looked at has none.
func (c *certificate) stamps() (out [2]stamp) {
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			out[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return out
}
