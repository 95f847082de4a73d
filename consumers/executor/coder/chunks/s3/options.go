package s3

import (
	"cmp"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/clock"
	"penstock/infra/objectstore/s3/wire"
)

const (
	// minPart is the least that services take for a part that isn't the last.
	minPart = 5 << 20
	// maxParts is the most that services take in one upload.
	maxParts = 10_000
	// maxPrefix leaves room for the longest key in the 1,024 bytes that services take.
	maxPrefix = 1024 - chunks.MaxKey - len("/") - len(mark)
)

// Options of a store in a bucket.
type Options struct {
	// Name is the store's in the configuration.
	Name string
	// Endpoint is the service's URL, https://s3.eu-central-1.amazonaws.com.
	Endpoint string
	// Region defaults to what the endpoint says, else the service is asked.
	Region string
	// Bucket must exist.
	Bucket string
	// Prefix of all keys, without a slash at its ends. Stores in one bucket differ by
	// it, and none may lie within another.
	Prefix string
	// AccessKey and SecretKey, with SessionToken if they are temporary. If all are
	// empty, they are taken from the environment (AWS_ACCESS_KEY_ID …), the file
	// ~/.aws/credentials, or the machine's role, in this order.
	AccessKey, SecretKey, SessionToken string

	// Attempts is how often a request is sent before its failure is returned. Defaults
	// to 4: a chunk task has others to fall back on.
	Attempts int
	// Pause is the first pause between attempts at most; it doubles. Defaults to 25 ms.
	Pause time.Duration
	// Timeout is how long the service may be silent. Defaults to 20 s.
	Timeout time.Duration
	// PartSize is how many bytes a Put holds in memory at most, and the size of the
	// parts of larger blobs. Defaults to 8 MiB.
	PartSize int
	// Late is how long after the end of a Put that got no answer the service may still carry
	// it out. Defaults to chunks.DefaultLate.
	Late time.Duration
	// Connections is how many idle ones are kept. Defaults to 64.
	Connections int

	// Clock paces retries. Defaults to the machine's.
	Clock clock.Clock
	// Count is called with a reason whenever something is tried again or left:
	// "retry", "throttled", "resumed", "upload-left". Defaults to nothing.
	Count func(reason string, n int64)
}

// complete checks the options and fills in what is missing.
func (o *Options) complete() (wire.Options, error) {
	bad := func(format string, args ...any) (wire.Options, error) {
		return wire.Options{}, fmt.Errorf("store %s: %w: "+format, append([]any{o.Name, ErrOption}, args...)...)
	}
	host, secure, err := wire.Endpoint(o.Endpoint, false)
	switch {
	case err != nil:
		return bad("%w", err)
	case o.Name == "":
		return bad("no name")
	case o.Bucket == "":
		return bad("no bucket")
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return bad("an access key needs its secret key")
	case len(o.Prefix) > maxPrefix:
		return bad("a prefix of %d bytes", len(o.Prefix))
	}
	if err := wire.CheckPrefix(o.Prefix); err != nil {
		return bad("prefix %.80q: %w", o.Prefix, err)
	}
	o.Attempts = cmp.Or(o.Attempts, 4)
	o.Pause = cmp.Or(o.Pause, 25*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.PartSize = cmp.Or(o.PartSize, 8<<20)
	o.Late = cmp.Or(o.Late, chunks.DefaultLate)
	o.Connections = cmp.Or(o.Connections, 64)
	if o.Attempts < 1 || o.Pause < 0 || o.Timeout < 0 || o.Late < 0 || o.Connections < 1 || o.PartSize < minPart {
		return bad("a number is out of range")
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Count == nil {
		o.Count = func(string, int64) {}
	}
	return wire.Options{
		Host: host, Secure: secure, Region: o.Region, AccessKey: o.AccessKey, SecretKey: o.SecretKey, SessionToken: o.SessionToken,
		Timeout: o.Timeout, Connections: o.Connections, Attempts: o.Attempts, Pause: o.Pause, Clock: o.Clock, Count: o.Count,
	}, nil
}
