package s3front

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Key is what a client signs with.
type Key struct {
	Access, Secret string
	// ReadOnly keys may get, head and list.
	ReadOnly bool
}

// Keys are those that may come in, by access key.
type Keys map[string]Key

// Limits of a keys file.
const (
	minSecret  = 16
	maxKeyLine = 512
	maxKeys    = 10_000
)

// ReadKeys reads a keys file: see ParseKeys.
func ReadKeys(file string) (Keys, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	defer func() { _ = f.Close() }()
	return ParseKeys(file, f)
}

// ParseKeys reads a key a line: the access key, the secret of at least 16 bytes, and
// "read" if it may only read, apart by blanks. Empty lines and those that begin with #
// are passed over. Errors wrap ErrKeys and name the file, which is what r is called, and
// the line; they never hold a secret.
func ParseKeys(file string, r io.Reader) (Keys, error) {
	keys := Keys{}
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, maxKeyLine), maxKeyLine)
	line := 0
	for s.Scan() {
		line++
		text := bytes.TrimSpace(s.Bytes())
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		k, fault := parseKey(string(text))
		switch _, twice := keys[k.Access]; {
		case fault != "":
		case twice:
			fault = fmt.Sprintf("access key %q for the second time", k.Access)
		case len(keys) == maxKeys:
			fault = fmt.Sprintf("more than %d keys", maxKeys)
		}
		if fault != "" {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, line, fault, ErrKeys)
		}
		keys[k.Access] = k
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w: %w", file, line+1, ErrKeys, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no key in it: %w", file, ErrKeys)
	}
	return keys, nil
}

// parseKey reads a line, or says what is wrong with it.
func parseKey(line string) (k Key, fault string) {
	words := strings.Fields(line)
	if len(words) != 2 && len(words) != 3 {
		return Key{}, fmt.Sprintf("%d words, expected an access key, its secret and perhaps read", len(words))
	}
	k = Key{Access: words[0], Secret: words[1]}
	if fault = k.fault(); fault != "" {
		return Key{}, fault
	}
	if len(words) == 3 {
		if words[2] != "read" {
			return Key{}, fmt.Sprintf("access key %q: third word is not read", k.Access)
		}
		k.ReadOnly = true
	}
	return k, ""
}

// fault says what is wrong with a key, empty for nothing.
func (k Key) fault() string {
	switch {
	case len(k.Access) < 3 || len(k.Access) > 128 || strings.ContainsFunc(k.Access, notOfAccess):
		return "access key is not 3 to 128 letters, digits, . _ or -"
	case strings.HasPrefix(k.Access, "ASIA"):
		return fmt.Sprintf("access key %q is one of a session, which there are none of", k.Access)
	case len(k.Secret) < minSecret:
		return fmt.Sprintf("secret of access key %q has less than %d bytes", k.Access, minSecret)
	case strings.ContainsFunc(k.Secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Sprintf("secret of access key %q has characters that are no printable ASCII", k.Access)
	}
	return ""
}

// notOfAccess: of the signs of a credential scope (/ , = and blanks) none may stand in
// an access key.
func notOfAccess(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// check returns ErrOptions or nil.
func (k Keys) check() error {
	if len(k) == 0 {
		return fmt.Errorf("%w: no keys", ErrOptions)
	}
	names := make([]string, 0, len(k))
	for name := range k {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch fault := k[name].fault(); {
		case name != k[name].Access:
			return fmt.Errorf("%w: key %q is called %q", ErrOptions, name, k[name].Access)
		case fault != "":
			return fmt.Errorf("%w: %s", ErrOptions, fault)
		}
	}
	return nil
}
