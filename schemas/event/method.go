package event

// OpOf tells reads from writes by the method of an HTTP request, in capitals: the
// methods that the HTTP method registry calls safe are reads, and those that carry
// no data of an owner (CONNECT, PRI). Any other, a made-up one too, may change data.
func OpOf(method string) Op {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI":
		return Read
	}
	return Write
}
