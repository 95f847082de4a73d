package strict

// text is what the checks read: headers of HTTP/1.1 are bytes of a buffer,
// those of HTTP/2 are strings.
type text interface{ ~string | ~[]byte }

// Kinds of characters, one bit each.
const (
	tokenChar  = 1 << iota // RFC 9110 §5.6.2
	targetChar             // printable ASCII but #
	valueChar              // RFC 9110 §5.5: visible, space, tab, and bytes from 0x80
	hostChar               // of a registered name, an address in brackets, a port
	hexChar
)

var kinds = func() (k [256]uint8) {
	set := func(chars string, kind uint8) {
		for i := range len(chars) {
			k[chars[i]] |= kind
		}
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const digits = "0123456789"
	set(letters+digits+"!#$%&'*+-.^_`|~", tokenChar)
	set(letters+digits+"-._~", hostChar)
	set(digits+"abcdefABCDEF", hexChar)
	for c := range 256 {
		if c > ' ' && c < 0x7f && c != '#' {
			k[c] |= targetChar
		}
		if c >= ' ' && c != 0x7f || c == '\t' {
			k[c] |= valueChar
		}
	}
	return k
}()

func all[T text](s T, kind uint8) bool {
	for i := range len(s) {
		if kinds[s[i]]&kind == 0 {
			return false
		}
	}
	return true
}

// IsToken reports whether s is a token of RFC 9110 §5.6.2.
func IsToken[T text](s T) bool { return len(s) > 0 && all(s, tokenChar) }

// CheckMethod returns why a request with this method is refused, nil if it is
// not: methods are up to 32 capital letters, digits, - and _, as all registered
// ones are. A made-up one passes; "get" does not, which some servers take for
// GET and some don't. CONNECT would make a tunnel, TRACE tell headers.
func CheckMethod[T text](m T) *Refusal {
	if !IsToken(m) {
		return RefusedMethodName
	}
	if len(m) > 32 {
		return RefusedMethod
	}
	for i := range len(m) {
		if c := m[i]; (c < 'A' || c > 'Z') && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return RefusedMethod
		}
	}
	if string(m) == "CONNECT" || string(m) == "TRACE" {
		return RefusedTunnel
	}
	return nil
}

// IsPath reports whether s is a target in origin form: it begins with a slash,
// holds printable ASCII without #, and % in its path only before two
// hexadecimal digits.
func IsPath[T text](s T) bool {
	return len(s) > 0 && s[0] == '/' && all(s, targetChar) && escapes(s)
}

// escapes checks the percent signs before the query.
func escapes[T text](s T) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '?':
			return true
		case '%':
			if i+2 >= len(s) || kinds[s[i+1]]&hexChar == 0 || kinds[s[i+2]]&hexChar == 0 {
				return false
			}
			i += 2
		}
	}
	return true
}

// IsHost reports whether s is a host with or without a port: letters, digits,
// dots, dashes, underscores and tildes, or an IPv6 address in brackets. Nothing that a URL
// may hold before the host (user information) or after it passes.
func IsHost[T text](s T) bool {
	if len(s) == 0 || len(s) > 261 {
		return false
	}
	i := 0
	if s[0] == '[' {
		for i = 1; i < len(s) && (kinds[s[i]]&hexChar != 0 || s[i] == ':' || s[i] == '.'); i++ {
		}
		if i < 3 || i == len(s) || s[i] != ']' {
			return false
		}
		i++
	} else {
		for i < len(s) && kinds[s[i]]&hostChar != 0 {
			i++
		}
		if i == 0 {
			return false
		}
	}
	if i == len(s) {
		return true
	}
	if s[i] != ':' || len(s)-i > 6 || len(s)-i < 2 {
		return false
	}
	port := 0
	for _, c := range []byte(s[i+1:]) {
		if c < '0' || c > '9' {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// same compares with a lower-case word without regard to case; an underscore
// counts as a dash, for gateways that make variables of names take them for one.
func same[T text](s T, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(lower) {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '_':
			c = '-'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// trim takes optional white space off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
