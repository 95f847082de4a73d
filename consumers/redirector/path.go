package redirector

import (
	"fmt"
	"net/url"
	"strings"
)

// maxOwner is the longest id (DESIGN §3), in bytes.
const maxOwner = 1024

// target is what a request asks for.
type target struct {
	what  string // locations, batch or redirect
	owner string
	// rest is what a Location has after the site's URL: "" or path with a leading
	// slash, and query.
	rest string
}

// The kinds of targets, in metrics too.
const (
	whatLocation = "location"
	whatBatch    = "batch"
	whatRedirect = "redirect"
	whatNone     = "none"
)

const (
	locationsPath = "/v1/locations"
	redirectPath  = "/r/"
)

// parse reads the target of a request as it was sent: what the standard library
// makes of it can't be told from an owner with a slash in it any more.
func parse(uri string) (target, error) {
	if !strings.HasPrefix(uri, "/") {
		// The absolute form, as proxies get it: what is between is not our business.
		_, after, found := strings.Cut(uri, "://")
		slash := strings.IndexAny(after, "/?")
		if !found || slash < 0 || after[slash] == '?' {
			return target{what: whatNone}, errPath
		}
		uri = after[slash:]
	}
	path, query, hasQuery := strings.Cut(uri, "?")
	switch {
	case path == locationsPath:
		return target{what: whatBatch}, nil
	case strings.HasPrefix(path, locationsPath+"/"):
		owner, err := unescapeOwner(path[len(locationsPath)+1:])
		return target{what: whatLocation, owner: owner}, err
	case strings.HasPrefix(path, redirectPath):
	default:
		return target{what: whatNone}, errPath
	}
	t := target{what: whatRedirect}
	segment, rest, more := strings.Cut(path[len(redirectPath):], "/")
	var err error
	if t.owner, err = unescapeOwner(segment); err != nil {
		return t, err
	}
	var b strings.Builder
	if more {
		b.WriteByte('/')
		if err := escapePath(&b, rest); err != nil {
			return t, err
		}
	}
	if hasQuery {
		b.WriteByte('?')
		escape(&b, query, queryByte)
	}
	t.rest = b.String()
	return t, nil
}

func unescapeOwner(segment string) (string, error) {
	owner, err := url.PathUnescape(segment)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errOwner, err)
	}
	if owner == "" || len(owner) > maxOwner || strings.Contains(segment, "/") {
		return "", errOwner
	}
	return owner, nil
}

// escapePath appends a path whose segments must not be dots, however spelled.
func escapePath(b *strings.Builder, path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		switch s, err := url.PathUnescape(segment); {
		case err != nil:
			return fmt.Errorf("%w: %w", errPath, err)
		case dots(s):
			return errDots
		}
	}
	escape(b, path, pathByte)
	return nil
}

// dots reports whether a decoded segment is . or .. to anybody: some take a
// backslash for a slash, and some decode twice.
func dots(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\\' || r == '/' }) {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "%2e", "."), "%2E", ".")
		// What follows a semicolon is a parameter to some.
		part, _, _ = strings.Cut(part, ";")
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// escape appends what may stand in this part of a URL, and the rest encoded.
func escape(b *strings.Builder, s string, may func(byte) bool) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; may(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}

// pathByte reports whether RFC 3986 lets a byte stand in a path.
func pathByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~!$&'()*+,;=:@/%", c) >= 0
}

func queryByte(c byte) bool { return c == '?' || pathByte(c) }
