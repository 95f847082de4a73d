package otlp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"penstock/infra/address"
)

const bearer = "Bearer "

// authorized wants a token of those who listen for others than this host.
func (o *Options) authorized() error {
	for _, l := range [...]net.Listener{o.GRPC, o.HTTP} {
		if l != nil && o.Token == "" && !address.IsLoopback(address.Host(l.Addr().String())) {
			return fmt.Errorf("%s is off loopback: %w", l.Addr(), ErrToken)
		}
	}
	return nil
}

// allowed reports whether a header Authorization has the token. How long it takes does
// not tell how much of one fits.
func (r *Receiver) allowed(authorization string) bool {
	if r.o.Token == "" {
		return true
	}
	got, ok := strings.CutPrefix(authorization, bearer)
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(r.o.Token))
	return ok && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// admit refuses calls of gRPC without the token, before their messages are read.
func (r *Receiver) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	var got string
	if v := info.Header.Get("authorization"); len(v) > 0 {
		got = v[0]
	}
	if r.allowed(got) {
		return ctx, nil
	}
	r.m.requests.WithLabelValues("grpc", outcomeToken).Inc()
	return nil, status.Error(codes.Unauthenticated, errNoToken)
}

// errNoToken is what clients are told who do not send the token.
const errNoToken = "expected Authorization: Bearer and the receiver's token"
