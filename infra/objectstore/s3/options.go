package s3

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/objectstore/manifest"
	"penstock/infra/objectstore/s3/wire"
)

const (
	// minPart is the least that services take for a part that isn't the last.
	minPart = 5 << 20
	// maxParts is the most that services take in one upload.
	maxParts = 10_000
)

// Options of a store in a bucket.
type Options struct {
	// Endpoint is the service's URL, https://s3.eu-central-1.amazonaws.com, or
	// its host and port, for which Secure chooses the scheme.
	Endpoint string
	Secure   bool
	// Region defaults to what the endpoint says, else the service is asked.
	Region string
	// Bucket must exist.
	Bucket string
	// Prefix of all keys, without a slash at its ends. Stores of different sites
	// in one bucket differ by it, and none may lie within another.
	Prefix string
	// AccessKey and SecretKey, with SessionToken if they are temporary. If all
	// are empty, they are taken from the environment (AWS_ACCESS_KEY_ID …), the
	// file ~/.aws/credentials, or the machine's role, in this order.
	AccessKey, SecretKey, SessionToken string

	// Attempts is how often a request is sent before its failure is returned.
	// Defaults to 6, which take up to 6 s of pauses.
	Attempts int
	// Pause is the first pause between attempts at most; it doubles up to 40
	// times that. Defaults to 50 ms.
	Pause time.Duration
	// Timeout is how long the service may be silent. Defaults to 20 s.
	Timeout time.Duration
	// PartSize is how many bytes of a large object are held in memory by a Put,
	// and the size of its parts, of which there may be 10,000. Defaults to 16 MiB.
	PartSize int
	// Connections is how many idle ones are kept. Defaults to 64.
	Connections int

	// Clock paces retries. Defaults to the machine's.
	Clock clock.Clock
	// Count is called with a reason whenever something is tried again or given up:
	// "retry", "throttled", "resumed", "torn-read", "upload-left",
	// "overwritten-left". Defaults to nothing.
	Count func(reason string, n int64)
	// Logger defaults to one that discards.
	Logger zerolog.Logger
	// Manifest are those of the store above; its Clock and Count default to the
	// ones here.
	Manifest manifest.Options

	maxParts int // of an upload; tests make do with fewer
}

// complete checks the options and fills in what is missing. It returns the host
// and port to connect to.
func (o *Options) complete() (host string, err error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrOption}, args...)...)
	}
	if host, o.Secure, err = wire.Endpoint(o.Endpoint, o.Secure); err != nil {
		return "", bad("%w", err)
	}
	if o.Bucket == "" {
		return "", bad("no bucket")
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return "", bad("an access key needs its secret key")
	}
	if err := wire.CheckPrefix(o.Prefix); err != nil {
		return "", bad("prefix %.80q: %w", o.Prefix, err)
	}
	o.Attempts = cmp.Or(o.Attempts, 6)
	o.Pause = cmp.Or(o.Pause, 50*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.PartSize = cmp.Or(o.PartSize, 16<<20)
	o.Connections = cmp.Or(o.Connections, 64)
	o.maxParts = cmp.Or(o.maxParts, maxParts)
	if o.Attempts < 1 || o.Pause < 0 || o.Timeout < 0 || o.Connections < 1 {
		return "", bad("a number is out of range")
	}
	if o.PartSize < minPart {
		return "", bad("a part size of %d bytes; at least %d", o.PartSize, minPart)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Count == nil {
		o.Count = func(string, int64) {}
	}
	if o.Manifest.Clock == nil {
		o.Manifest.Clock = o.Clock
	}
	if o.Manifest.Count == nil {
		o.Manifest.Count = o.Count
	}
	return host, nil
}
