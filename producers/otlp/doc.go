// Package otlp receives spans by OTLP, over gRPC and HTTP (protobuf and JSON, plain
// or gzip), and publishes the calls that they tell of (DESIGN §3.1, §4.2; P18).
//
//	gRPC  ┐                          one goroutine
//	      ├─ decode ─▶ [queue] ─▶ join.Joiner ─▶ calls ─▶ Publisher
//	HTTP  ┘             bounded     trace open for Window
//
// Packages beside this one: span has what a span is and the rules for attributes,
// wire the decoders of OTLP, join what makes calls of spans, spanfile the import of
// recordings.
//
// A call is published Window after its end, by which time exporters have sent both
// halves, however long its trace goes on, with a time that lies that far back. A
// publisher that takes them needs a Disorder of at least [Options.Delay].
//
// Several receivers share traces ([Options.Peers]): each trace has one owner, to which
// the others send its spans before they answer, so that the halves of a call meet
// wherever they arrive. While a receiver can't be reached its traces belong to
// others; calls whose halves are on both sides of that moment have one half. HTTP
// needs no such thing: it is one receiver with gRPC.
//
// What clients are told follows OTLP:
//
//   - taken, with as many rejected spans as can't be used, and the first reason
//     (partial success: not to be sent again)
//   - not a request of OTLP at all: 400, INVALID_ARGUMENT: not to be sent again
//   - no token where one is needed: 401, UNAUTHENTICATED
//   - too large: 413, RESOURCE_EXHAUSTED: not to be sent again
//   - no room, or closing: 503 with Retry-After, UNAVAILABLE with RetryInfo: to be
//     sent again, and nothing of it has been taken
//
// A request that was answered well is in memory and nowhere else: a kill loses what
// ended in the last [Options.Delay], and traces that go on. Nothing is dropped otherwise: what is refused is said so, and
// every span that was taken has one fate in penstock_otlp_spans_total.
//
// States of a [Receiver]: made by New, serving in Run, closing once the context of
// Run ends: requests under way end, the queue is emptied, all traces are resolved.
// Failures: Run returns what ended a listener; there are no others.
package otlp
