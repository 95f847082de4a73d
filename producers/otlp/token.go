package otlp

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"penstock/infra/door"
)

const bearer = "Bearer "

// guard checks who may listen where; the error wraps door.ErrToken or ErrOptions.
func (o *Options) guard() (*door.Door, error) {
	d := door.Options{}
	if o.Token != "" {
		d.Tokens = []string{o.Token}
	}
	for _, l := range [...]net.Listener{o.GRPC, o.HTTP} {
		if l == nil {
			continue
		}
		if err := d.Check(l.Addr().String()); err != nil {
			return nil, fmt.Errorf("OTLP receiver: %w: %w", err, ErrOptions)
		}
	}
	return door.New(d), nil
}

// enter answers a request over HTTP that may not come in.
func (r *Receiver) enter(w http.ResponseWriter, req *http.Request) bool {
	_, refused := r.door.Enter(req)
	if refused == 0 {
		return true
	}
	r.m.requests.WithLabelValues("http", outcomeToken).Inc()
	text := "expected a host of loopback: without a token spans are taken from this machine"
	if refused == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="penstock"`)
		text = errNoToken
	}
	http.Error(w, text, refused)
	return false
}

// admit refuses calls of gRPC without the token before their messages are read.
func (r *Receiver) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if got := append(info.Header.Get("authorization"), ""); r.door.Proves(got[0]) {
		return ctx, nil
	}
	r.m.requests.WithLabelValues("grpc", outcomeToken).Inc()
	return nil, status.Error(codes.Unauthenticated, errNoToken)
}

// errNoToken is what clients are told who do not send the token.
const errNoToken = "expected Authorization: Bearer and the receiver's token"
