// Package span holds spans as calls are made of them (DESIGN §3.1, P18): ids,
// times, and what a [Mapper] found in their attributes by configurable [Rules].
//
// A Span is a plain value. Unknown times are [Unknown], never 0: a span without a
// duration still says that something was called. Times are those of the clock
// of the span's own host and are not corrected.
//
// Failures: [Span.Check] says what makes a span unusable; [NewMapper] refuses
// rules that can't be compiled. Nothing here knows a format.
package span
