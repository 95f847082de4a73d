// Package middleware is for services that publish their own requests, where no
// entry point of ours stands in front of them and no log is read:
//
//	rec, err := middleware.Open(ctx, middleware.Options{URL: "nats://bus:4222", Entry: "shop-1",
//		Component: "shop", Site: "us-east", SpoolDir: "/var/spool/shop"})
//	…
//	http.ListenAndServe(addr, rec.HTTP(mux, middleware.Rules{Owner: middleware.PathValue("owner")}))
//
// A [Recorder] is a live publisher (infra/publisher) on a patient bus (infra/bus).
// HTTP handlers are wrapped by [Recorder.HTTP], gRPC servers by the interceptors,
// and anything else calls [Recorder.Record]. Each request becomes one row when it
// has been answered: who asked for whose data, here, how many bytes both ways, the
// status, and how long it took to serve (DESIGN §3.1). What the service cannot
// know, such as the time in the network, is absent.
//
// The bus never delays or fails the service. It may be away at the start and at
// any time; rows are then spooled to SpoolDir up to SpoolMax, and dropped beyond
// it, counted by reason. [Recorder.Fault] tells of a bus that is there and is not
// the one that was meant. A rule that panics costs its row a column and is
// counted. Rows that cannot be events (an id of more than 1,024 bytes, …) are
// counted as malformed, as lines of a log are.
//
// Answers carry Server-Timing: app;dur=MILLISECONDS, the time until their first
// byte, so that an entry point in front can tell serving from the network. Where
// one stands in front, let it do the counting and use [Timed] alone: a request
// that is published by both is counted twice.
package middleware
