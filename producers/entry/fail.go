package entry

import (
	"errors"
	"net/http"

	"penstock/producers/entry/strict"
	"penstock/producers/entry/upstream"
)

// fail answers a request that got no answer.
func (x *exchange) fail(err error) {
	x.kind = kindFailed
	if x.failBody() {
		return
	}
	if x.r.Context().Err() != nil {
		x.gone = true
		return
	}
	x.unreached = errors.Is(err, upstream.ErrConnect)
	if errors.Is(err, upstream.ErrRequest) || errors.Is(err, upstream.ErrRequestBody) {
		x.asked = false // it is the request that could not be sent
	}
	var busy *upstream.BusyError
	if errors.As(err, &busy) {
		x.again = busy.Wait
	}
	x.refuse(failure(err))
}

// failure is what an error of a pool is answered with.
func failure(err error) (status int, reason, text string) {
	switch {
	case errors.Is(err, upstream.ErrBusy):
		return http.StatusServiceUnavailable, reasonBusy, "too many requests wait: try again"
	case errors.Is(err, upstream.ErrNoServer):
		return http.StatusServiceUnavailable, reasonNoServer, "no server is free: try again"
	case errors.Is(err, upstream.ErrTimeout):
		return http.StatusGatewayTimeout, reasonTimeout, "the server took too long"
	}
	return http.StatusBadGateway, reasonServer, "the server gave no answer"
}

// failBody answers if it was the request's body that could not be read.
func (x *exchange) failBody() bool {
	if x.body == nil {
		return false
	}
	_, err := x.body.state()
	var framing *strict.Refusal
	if c := x.client.conn; c != nil {
		framing = c.BodyFault()
	}
	switch {
	case framing != nil:
		x.refuse(framing.Status, framing.Reason, framing.Text)
	case err == nil, isEnd(err), errors.Is(err, errSuperseded):
		return false
	case errors.Is(err, errTooLarge):
		x.refuse(http.StatusRequestEntityTooLarge, "body-too-large", "the body is larger than the limit")
	case errors.Is(err, errTooSlow):
		x.refuse(http.StatusRequestTimeout, "body-too-slow", "the body came too slowly")
	case x.r.Context().Err() != nil:
		x.gone = true
	default:
		x.refuse(http.StatusBadRequest, "body-cut", "the body did not come to its end")
	}
	x.kind, x.asked = kindRefused, false
	return true
}
