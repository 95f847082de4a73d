// Package s3front answers S3 requests with the objects of a coder (DESIGN §4.4).
//
//	net/http     parses requests, limits headers, connections and time; ends with Run
//	adapter.go   hands a request to versitygw's controllers and their answer back
//	operation*   what is answered, what is refused by name
//	auth.go      Signature Version 4 by versitygw's middlewares; keys from a file
//	body.go      decodes and verifies bodies: aws-chunked, digests, length
//	backend*     versitygw's backend.Backend over a coder.Coder
//
// versitygw (Apache-2.0) brings Signature Version 4, the shapes of requests and answers,
// and the errors in XML. Its router and its server are not used: a body that its server
// refuses can be taken for the next request, it has no deadlines, and does not tell that
// a client has gone. Its readers of aws-chunked bodies are not used either: a negative
// size panics in the one, the other keeps a trailer of any length, and a body cut off
// before its last chunk passes as signed.
//
// A key is up to 1,024 bytes of UTF-8, and never a path. Buckets are named in the path,
// not in the host. Answers are those of S3, or NotImplemented with the operation's name;
// headers that would change what is stored (encryption, ACLs, tags, locks) are refused
// too, never dropped.
//
// States: New binds the address; Run serves until its context ends, lets requests finish
// for Options.Stop and cuts the rest. Failures: a body that is cut off, late, or of
// another digest stores nothing, and its connection is closed.
package s3front
