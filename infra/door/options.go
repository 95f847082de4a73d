package door

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"penstock/infra/address"
)

// Options say who may come in.
type Options struct {
	// ForwardedOnly makes Forwarded the only field of Trusted proxies that counts.
	ForwardedOnly bool
	// Public lets everybody in, off loopback too, without a token.
	Public bool
	// Tokens: one of them must be sent as "Authorization: Bearer TOKEN", unless
	// Public. Off loopback each must have at least 16 bytes.
	Tokens []string
	// Trusted are the proxies whose X-Forwarded-For counts, or Forwarded where there
	// is none.
	Trusted []netip.Prefix
}

// minToken is the least length of a token that is worth its name.
const minToken = 16

// Check says whether a server with these options may listen on an address,
// host:port. The error wraps ErrOptions or ErrToken.
func (o *Options) Check(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen address %.80q, expected host:port: %w: %w", listen, ErrOptions, err)
	}
	if slices.Contains(o.Tokens, "") {
		return fmt.Errorf("an empty token: %w", ErrOptions)
	}
	if o.Public || address.IsLoopback(host) {
		return nil
	}
	if len(o.Tokens) == 0 {
		return fmt.Errorf("listen address %q: %w", listen, ErrToken)
	}
	for _, t := range o.Tokens {
		if len(t) < minToken {
			return fmt.Errorf("listen address %q, token of %d bytes, expected at least %d: %w", listen, len(t), minToken, ErrToken)
		}
	}
	return nil
}
