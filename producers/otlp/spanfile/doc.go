// Package spanfile imports recorded spans (DESIGN §5, import spans): OTLP as JSON
// lines, JSON documents and protobuf, Jaeger's and Zipkin's JSON, and span CSV
// become calls by package join, and calls become requests in order of time.
//
//	file ──plain, gz, zst──▶ format ──▶ spans ──▶ join.Joiner ──▶ calls ──▶ order ──▶ emit
//	                           └─ told from the first bytes
//
// Several files are read one after the other into one Joiner, so that traces which
// go over from one to the next are whole. Traces are open for a number of spans,
// not for a time: a clock that is off closes nothing. Requests wait in a bounded
// buffer for others that were earlier; with fewer requests than that the recording
// is in order.
//
// JSON is cut into documents before it is decoded. The elements of an array at the
// top are documents of their own, so a dump of any size is read a span at a time.
// One that is broken costs itself; where documents stand on lines it costs its line.
//
// Failures: what can't be used is told to Options.Bad and counted, never fatal. A
// file that is of no known format gives ErrFormat, one that breaks off
// recording.ErrDamaged.
package spanfile
