package identify

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are those of a token that counts.
type Claims map[string]any

// text returns a claim that is a string or a number.
func (c Claims) text(name string) string {
	v, ok := c[name]
	for m := map[string]any(c); !ok; {
		first, rest, dotted := strings.Cut(name, ".")
		if !dotted {
			break
		}
		inner, is := m[first].(map[string]any)
		if !is {
			break
		}
		m, name = inner, rest
		v, ok = m[name]
	}
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// maxCached bounds the tokens that are remembered; a full memory begins anew.
// maxKept is the longest of them, maxToken the longest that is read, in bytes.
const (
	maxCached = 4096
	maxKept   = 2 << 10
	maxToken  = 16 << 10
)

// leeway is how far clocks of issuers may be off.
const leeway = 30 * time.Second

// Tokens reads JSON Web Tokens.
type Tokens struct {
	key    any
	parser *jwt.Parser
	now    func() time.Time

	mu    sync.RWMutex
	known map[string]known
}

// known is a token that was read, and until when it counts.
type known struct {
	claims Claims
	until  time.Time // zero: for ever
}

// NewTokens returns a reader that verifies with the key: bytes of a secret for
// HS256 to HS512, else a public key. nil reads without verifying. The error
// wraps ErrKey.
func NewTokens(key any, now func() time.Time) (*Tokens, error) {
	t := &Tokens{key: key, now: now, known: map[string]known{}}
	var methods []string
	switch k := key.(type) {
	case nil:
	case []byte:
		if len(k) < 16 {
			return nil, fmt.Errorf("a secret of %d bytes, expected 16 or more: %w", len(k), ErrKey)
		}
		methods = []string{"HS256", "HS384", "HS512"}
	case *rsa.PublicKey:
		methods = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		// The algorithm follows from the curve: 256, 384 or 521 bits.
		bits := k.Curve.Params().BitSize
		methods = []string{"ES" + strconv.Itoa(min(bits, 512))}
	case ed25519.PublicKey:
		methods = []string{"EdDSA"}
	default:
		return nil, fmt.Errorf("a key of type %T: %w", key, ErrKey)
	}
	t.parser = jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithJSONNumber(), jwt.WithTimeFunc(now), jwt.WithLeeway(leeway))
	return t, nil
}

// ParseKey reads a public key in PEM, or else takes the bytes for a secret,
// without line ends around it.
func ParseKey(public bool, b []byte) (any, error) {
	if !public {
		return []byte(strings.Trim(string(b), "\r\n")), nil
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("no PEM: %w", ErrKey)
	}
	var key crypto.PublicKey
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var c *x509.Certificate
		if c, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = c.PublicKey
		}
	default:
		return nil, fmt.Errorf("PEM of type %q: %w", block.Type, ErrKey)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrKey)
	}
	return key, nil
}

// Verifies reports whether tokens are verified.
func (t *Tokens) Verifies() bool { return t.key != nil }

// Read returns the claims of the token in an Authorization header; nil and no
// error if it holds none. The error wraps ErrToken and holds nothing of the
// token.
func (t *Tokens) Read(authorization []string) (Claims, error) {
	if len(authorization) == 0 {
		return nil, nil
	}
	if len(authorization) > 1 {
		// The service might read another one than is read here.
		return nil, fmt.Errorf("more than one: %w", ErrToken)
	}
	scheme, token, ok := strings.Cut(authorization[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return nil, nil
	}
	if token = strings.TrimSpace(token); len(token) > maxToken {
		return nil, fmt.Errorf("longer than %d bytes: %w", maxToken, ErrToken)
	}
	t.mu.RLock()
	k, ok := t.known[token]
	t.mu.RUnlock()
	if ok && (k.until.IsZero() || t.now().Before(k.until)) {
		return k.claims, nil
	}
	k, err := t.parse(token)
	if err != nil {
		return nil, err
	}
	if len(token) > maxKept {
		return k.claims, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxCached {
		clear(t.known)
	}
	t.known[strings.Clone(token)] = k
	return k.claims, nil
}

func (t *Tokens) parse(token string) (known, error) {
	claims := jwt.MapClaims{}
	if t.key == nil {
		if _, _, err := t.parser.ParseUnverified(token, claims); err != nil {
			return known{}, fmt.Errorf("not a token: %w", ErrToken)
		}
		return known{claims: Claims(claims)}, nil
	}
	if _, err := t.parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return t.key, nil }); err != nil {
		return known{}, fmt.Errorf("%s: %w", fault(err), ErrToken)
	}
	k := known{claims: Claims(claims)}
	if exp, err := claims.GetExpirationTime(); err == nil && exp != nil {
		k.until = exp.Add(leeway)
	}
	return k, nil
}

// fault names what is wrong with a token in words that hold nothing of it.
func fault(err error) string {
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "not a token"
	case errors.Is(err, jwt.ErrTokenExpired):
		return "expired"
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return "not valid yet"
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable):
		return "signature"
	}
	return "claims"
}
