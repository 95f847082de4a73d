// Package wire reads OTLP: what protobuf and its two mappings to JSON say of
// spans (opentelemetry-proto, trace service; P09).
//
//	bytes ──▶ ExportTraceServiceRequest ──▶ resource ──▶ span ──▶ emit
//	                                            │          └──▶ bad, with the reason
//	                                      span.Mapper
//
// JSON is read leniently, as it is written by more than its own exporters: ids in
// hexadecimal or base64, numbers as numbers or texts, kinds by number or name,
// libraries in place of scopes, attribute values of any nesting. Attributes that no
// rule wants are not decoded.
//
// Failures: bytes that are no request at all give an error that wraps
// span.ErrMalformed and emit nothing, or nothing more. A span that can't be used is told to bad,
// and the others go on. Nothing panics, whatever the bytes.
package wire
