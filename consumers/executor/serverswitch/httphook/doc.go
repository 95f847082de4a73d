// Package httphook is a serverswitch.Backend that calls a URL.
//
//	POST URL  {"version":1,"action":"on","site":"east","server":"10.0.0.7:80","zone":"a",
//	           "url":"http://10.0.0.7:80","epoch":412}
//	Idempotency-Key: "…"    the same for all tries of one switch, also after a crash
//
// 2xx is success: the server is as ordered, or will be without a further word (its
// readiness is asked next). With StatusURL, of which {server}, {site} and {zone} are
// replaced, GET is to answer {"power":"on"}, {"power":"off"}, or anything else for: that
// can't be told.
//
// States: there are none. A call is tried again within its time, after a pause that
// grows, when nobody answers, or the answer is 408, 425, 429 or 5xx; Retry-After is
// heeded if it is longer. Redirects are not followed: a token goes to nobody else.
//
// Failures: ErrFailed with the last answer's status and the beginning of its body.
package httphook
