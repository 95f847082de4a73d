package door

import (
	"net/http"
	"strings"
)

// HasTag reports whether a client has the answer with an ETag already: it compares
// weakly, as If-None-Match does (RFC 9110 §13.1.2).
func HasTag(r *http.Request, tag string) bool {
	for _, line := range r.Header["If-None-Match"] {
		for t := range strings.SplitSeq(line, ",") {
			t = strings.TrimSpace(t)
			if t == "*" || strings.TrimPrefix(t, "W/") == tag {
				return true
			}
		}
	}
	return false
}
