package wire

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"penstock/infra/clock"
)

// Options of a client. There are no defaults but those named.
type Options struct {
	// Host and port of the service, and whether it speaks TLS; see Endpoint.
	Host   string
	Secure bool
	// Region defaults to what the host says, else the service is asked.
	Region string
	// AccessKey and SecretKey, with SessionToken if they are temporary. If all are
	// empty, they are taken from the environment (AWS_ACCESS_KEY_ID …), the file
	// ~/.aws/credentials, or the machine's role, in this order.
	AccessKey, SecretKey, SessionToken string
	// Timeout is how long the service may be silent.
	Timeout time.Duration
	// Connections is how many idle ones are kept.
	Connections int
	// Attempts is how often Send sends a request before its failure is returned.
	Attempts int
	// Pause is the first pause between attempts at most; it doubles up to 40 times that.
	Pause time.Duration
	// Clock paces retries.
	Clock clock.Clock
	// Count is called with a reason: "retry", "throttled".
	Count func(reason string, n int64)
}

// Client sends a request once by the methods of minio.Core, and several times within
// Send. It is safe for concurrent use.
type Client struct {
	*minio.Core
	o         Options
	pace      pacer
	transport *transport
	secrets   []string
}

// The client library rests, up to 200 ms, also after the last attempt that it makes. Ours
// make one, and a chunk of a store that is dead is asked for elsewhere sooner without.
func init() { minio.DefaultRetryUnit = 0 }

// New makes a client. Nothing is sent. The error is the client library's, of options
// that it can't use, without secrets.
func New(o Options) (*Client, error) {
	c := &Client{o: o, secrets: []string{o.SecretKey, o.AccessKey, o.SessionToken}}
	c.transport = newTransport(&c.o, c.slow)
	keys := credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken)
	if o.AccessKey == "" {
		keys = credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		})
	}
	core, err := minio.NewCore(o.Host, &minio.Options{
		Creds: keys, Secure: o.Secure, Region: o.Region, Transport: c.transport, MaxRetries: 1,
	})
	if err != nil {
		return nil, c.Safe(err)
	}
	c.Core = core
	return c, nil
}

// Close ends idle connections, and those that are still being made for requests which
// have ended.
func (c *Client) Close() { c.transport.close() }

// Endpoint takes the URL of a service, https://s3.eu-central-1.amazonaws.com, or its
// host and port, for which secure chooses the scheme. Its errors don't repeat it, since
// there may be secrets in it.
func Endpoint(text string, secure bool) (host string, tls bool, err error) {
	host = text
	if scheme, _, found := strings.Cut(text, "://"); found {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return "", false, errors.New("the endpoint is not a URL")
		case scheme != "http" && scheme != "https":
			return "", false, errors.New("the endpoint's scheme is neither http nor https")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
			return "", false, errors.New("the endpoint is more than a scheme, a host and a port")
		}
		secure, host = scheme == "https", u.Host
	}
	if host == "" || strings.ContainsAny(host, "/@ ") {
		return "", false, errors.New("the endpoint names no host")
	}
	return host, secure, nil
}

// MaxPrefix is the most bytes of a prefix. It leaves room for other parts of a key in the 1,024 bytes that services take.
const MaxPrefix = 512

// CheckPrefix tells what is wrong with a prefix of keys, which has no slash at its ends.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > MaxPrefix {
		return fmt.Errorf("longer than %d bytes", MaxPrefix)
	}
	for e := range strings.SplitSeq(prefix, "/") {
		if e == "" || e == "." || e == ".." {
			return errors.New("an element is empty or dots")
		}
	}
	return nil
}
