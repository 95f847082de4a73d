package strict

import "net/http"

// Refusal says why a request is not let through. Its Reason is one of a fixed
// few and may label a metric; its Text is for the client and tells nothing of
// what is behind the entry point.
type Refusal struct {
	Status       int
	Reason, Text string
}

func (r *Refusal) Error() string { return r.Text }

// BodyError ends the reading of a body whose framing is not well-formed. The
// connection cannot be used after it.
type BodyError struct{ *Refusal }

func (e *BodyError) Unwrap() error { return e.Refusal }

func bad(reason, text string) *Refusal { return &Refusal{http.StatusBadRequest, reason, text} }

// The refusals. Each is compared by its address.
var (
	RefusedLine        = bad("request-line", "the request line is not method, target and version with one space between")
	RefusedLineEnd     = bad("line-end", "a line ends in CR LF, and neither stands alone")
	RefusedByte        = bad("control-character", "a control character in a header")
	RefusedField       = bad("field", "a header line is not a name, a colon and a value")
	RefusedFold        = bad("folded-line", "a folded header line")
	RefusedTarget      = bad("target", "the target is not a path, nor an http URL")
	RefusedHost        = bad("host", "one Host is needed: a name or an address, and that of the target")
	RefusedLength      = bad("content-length", "one Content-Length is needed, of digits")
	RefusedFraming     = bad("framing", "Content-Length beside Transfer-Encoding")
	RefusedCoding      = bad("transfer-encoding", "a Transfer-Encoding is chunked, once, and of HTTP/1.1")
	RefusedConnection  = bad("connection-names", "Connection names a header that is not this connection's")
	RefusedChunk       = bad("chunk", "a chunk is not well-formed")
	RefusedTrailer     = bad("trailer", "a trailer is not well-formed, or may not be one")
	RefusedMethodName  = bad("method", "the method is not a token")
	RefusedUnknownCode = &Refusal{http.StatusNotImplemented, "coding-unknown", "the only transfer coding is chunked"}
	RefusedMethod      = &Refusal{http.StatusNotImplemented, "method-unknown", "a method is at most 32 capital letters"}
	RefusedTunnel      = &Refusal{http.StatusMethodNotAllowed, "method-refused", "CONNECT and TRACE are not served"}
	RefusedVersion     = &Refusal{http.StatusHTTPVersionNotSupported, "version", "the version is not HTTP/1.1 or HTTP/1.0"}
	RefusedURI         = &Refusal{http.StatusRequestURITooLong, "uri-too-long", "the request line is too long"}
	RefusedHeader      = &Refusal{http.StatusRequestHeaderFieldsTooLarge, "header-too-large", "the header is too large"}
	RefusedExpect      = &Refusal{http.StatusExpectationFailed, "expect", "the only expectation is 100-continue"}
	RefusedSlow        = &Refusal{http.StatusRequestTimeout, "header-timeout", "the header took too long"}
)
