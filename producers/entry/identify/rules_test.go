package identify

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"penstock/infra/pseudonym"
)

func hasher(t testing.TB) *pseudonym.Hasher {
	h, err := pseudonym.New([]byte("a key of tests"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTheFirstRuleThatYieldsCounts(t *testing.T) { // not parallel: it counts allocations
	h := hasher(t)
	s, err := Compile("user", []Rule{
		{Path: "/u/{user}/**"}, {Header: "x-user"}, {Cookie: "sid", Hash: true}, {Claim: "sub"}, {Claim: "org.id"}, {Address: true},
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddr("192.0.2.7")
	for name, test := range map[string]struct {
		r        Request
		want     string
		unusable bool
	}{
		"path":                 {Request{Path: "/u/ada/x", Header: http.Header{"X-User": {"bea"}}}, "ada", false},
		"path, escaped":        {Request{Path: Normal("/u/ann%40example.org%2f%C3%A9%20%41/x")}, "ann@example.org/é A", false},
		"path, no UTF-8":       {Request{Path: Normal("/u/%ff/x")}, "", true},
		"path, a slash":        {Request{Path: Normal("/u/a%2fb/x"), Header: http.Header{"X-User": {"bea"}}}, "a/b", false},
		"path, NUL":            {Request{Path: Normal("/u/a%00b/x")}, "", true},
		"path, line end":       {Request{Path: Normal("/u/a%0d%0ab/x"), Header: http.Header{"X-User": {"bea"}}}, "bea", true},
		"path, DEL":            {Request{Path: Normal("/u/%7f/x")}, "", true},
		"path, C1":             {Request{Path: Normal("/u/a%C2%85/x")}, "", true},
		"path, empty":          {Request{Path: Normal("/u//ada")}, "", false},
		"path, ..;":            {Request{Path: Normal("/u/ada/..;/bea/x")}, "", true},
		"path, ..;v=1":         {Request{Path: Normal("/u/ada/..;v=1/bea/x")}, "", true},
		"path, ..%2f":          {Request{Path: Normal("/u/ada/..%2fbea/x")}, "", true},
		"path, ..%5c":          {Request{Path: Normal("/u/ada/..%5Cbea/x")}, "", true},
		"path, %252e":          {Request{Path: Normal("/u/ada/%252e%252E/bea/x")}, "", true},
		"path, ; alone":        {Request{Path: Normal("/u/ada;v=1/x%20y")}, "ada;v=1", false},
		"path, dots in a name": {Request{Path: Normal("/u/a..b;..c/..x/%2e%2e%2ey")}, "a..b;..c", false},
		"header, tab":          {Request{Path: "/", Header: http.Header{"X-User": {"a\tb"}}}, "", true},
		"cookie, hashed NUL":   {Request{Path: "/", Header: http.Header{"Cookie": {"sid=a\x00b"}}}, "", true},
		"claim, NUL":           {Request{Path: "/", Claims: Claims{"sub": "a\x00b"}, Address: at}, h.Address(at), true},
		"header":               {Request{Path: "/", Header: http.Header{"X-User": {"bea", "cleo"}, "Cookie": {"sid=1"}}}, "bea", false},
		"cookie":               {Request{Path: "/", Header: http.Header{"Cookie": {"a=b; sid=\"1 2\"; sid=3"}}}, h.Text("1 2"), false},
		"second cookie line":   {Request{Path: "/", Header: http.Header{"Cookie": {"a=b;;=;c", " sid = x ; sid=1"}}}, h.Text("1"), false},
		"empty header":         {Request{Path: "/", Header: http.Header{"X-User": {""}}, Claims: Claims{"sub": "dora"}}, "dora", false},
		"claim inside another": {Request{Path: "/", Claims: Claims{"sub": true, "org": map[string]any{"id": "o1"}}}, "o1", false},
		"address":              {Request{Path: "/", Address: at}, h.Address(at), false},
		"none":                 {Request{Path: "/"}, "", false},
		"too long":             {Request{Path: "/", Header: http.Header{"X-User": {strings.Repeat("x", 1025)}}, Address: at}, h.Address(at), true},
		"no UTF-8":             {Request{Path: "/", Header: http.Header{"X-User": {"\xff"}}}, "", true},
	} {
		if got, unusable := s.Find(&test.r); got != test.want || unusable != test.unusable {
			t.Errorf("%s: got %q %v, expected %q", name, got, unusable, test.want)
		}
	}
	if got := strings.Join(s.Headers(), ","); got != "X-User,Cookie,Authorization,Authorization" || !s.NeedsClaims() {
		t.Errorf("looks at %s", got)
	}
	r := Request{Path: "/u/ada/x", Header: http.Header{}}
	if n := testing.AllocsPerRun(100, func() { s.Find(&r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRulesThatAreNone(t *testing.T) {
	t.Parallel()
	for fault, rules := range map[string][]Rule{
		"rule 1: expected one":      {{}},
		"rule 2: expected one":      {{Header: "X"}, {Header: "X", Cookie: "y"}},
		"rule 1: no key":            {{Header: "X", Hash: true}},
		"has no {user}":             {{Path: "/u/**"}},
		`expected {user}`:           {{Path: "/u/{owner}"}},
		"does not begin with a sla": {{Path: "u"}},
		`header "X User"`:           {{Header: "X User"}},
		`header "Ünicode"`:          {{Header: "Ünicode"}},
		`cookie "a=b"`:              {{Cookie: "a=b"}},
		`cookie "sid;"`:             {{Cookie: "sid;"}},
		`header "Penstock-User"`:    {{Header: "penstock-user"}},
	} {
		if _, err := Compile("user", rules, nil); !errors.Is(err, ErrRule) || !strings.Contains(err.Error(), fault) {
			t.Errorf("got %v, expected %s", err, fault)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC)
	secret := []byte("0123456789abcdef")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	edPublic, edKey, _ := ed25519.GenerateKey(rand.Reader)
	pemOf := func(public any) []byte {
		b, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: b})
	}
	keys := map[string]struct {
		public []byte
		sign   any
		method jwt.SigningMethod
	}{
		"rsa":     {pemOf(&rsaKey.PublicKey), rsaKey, jwt.SigningMethodRS256},
		"ecdsa":   {pemOf(&ecKey.PublicKey), ecKey, jwt.SigningMethodES256},
		"ed25519": {pemOf(edPublic), edKey, jwt.SigningMethodEdDSA},
		"secret":  {nil, secret, jwt.SigningMethodHS256},
	}
	for name, k := range keys {
		key, err := ParseKey(k.public != nil, append(k.public, map[bool]string{true: "", false: "0123456789abcdef\n"}[k.public != nil]...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		clock := now
		tokens, err := NewTokens(key, func() time.Time { return clock })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		read := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) (string, error) {
			s, err := jwt.NewWithClaims(method, claims).SignedString(key)
			if err != nil {
				t.Fatal(err)
			}
			c, err := tokens.Read([]string{"bearer " + s})
			return c.text("sub"), err
		}
		good := jwt.MapClaims{"sub": "ada", "exp": now.Add(time.Minute).Unix(), "nbf": now.Unix()}
		for range 2 { // the second time from memory
			if sub, err := read(k.method, k.sign, good); sub != "ada" || err != nil {
				t.Errorf("%s: %q, %v", name, sub, err)
			}
		}
		if sub, err := read(k.method, k.sign, jwt.MapClaims{"sub": 12345678901234567}); sub != "12345678901234567" || err != nil {
			t.Errorf("%s: a number: %q, %v", name, sub, err)
		}
		// The public key as a secret, no algorithm, another algorithm, another time.
		for why, attempt := range map[string]func() (string, error){
			"none":     func() (string, error) { return read(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good) },
			"confused": func() (string, error) { return read(jwt.SigningMethodHS256, append([]byte("x"), k.public...), good) },
			"old": func() (string, error) {
				return read(k.method, k.sign, jwt.MapClaims{"sub": "x", "exp": now.Add(-time.Minute).Unix()})
			},
			"not valid yet": func() (string, error) {
				return read(k.method, k.sign, jwt.MapClaims{"sub": "x", "nbf": now.Add(time.Hour).Unix()})
			},
		} {
			if sub, err := attempt(); sub != "" || !errors.Is(err, ErrToken) {
				t.Errorf("%s, %s: %q, %v", name, why, sub, err)
			}
		}
		clock = now.Add(2 * time.Minute)
		if sub, err := read(k.method, k.sign, good); sub != "" || !errors.Is(err, ErrToken) {
			t.Errorf("%s: remembered beyond its end: %q, %v", name, sub, err)
		}
	}
	open, err := NewTokens(nil, time.Now)
	if err != nil || open.Verifies() {
		t.Fatal(err)
	}
	s, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "ada"}).SignedString(secret)
	if c, err := open.Read([]string{"Bearer " + s}); err != nil || c.text("sub") != "ada" {
		t.Errorf("%v, %v", c, err)
	}
	for _, a := range [][]string{nil, {""}, {"Basic x"}, {"Bearer"}} {
		if c, err := open.Read(a); c != nil || err != nil {
			t.Errorf("%q: %v, %v", a, c, err)
		}
	}
	for _, a := range []string{"Bearer x", "Bearer a.b.c", "Bearer " + strings.Repeat("a", 20<<10)} {
		if _, err := open.Read([]string{a}); !errors.Is(err, ErrToken) || strings.Contains(err.Error(), "a.b.c") {
			t.Errorf("%.20s: %v", a, err)
		}
	}
	if c, err := open.Read([]string{"Bearer " + s, "Bearer " + s}); c != nil || !errors.Is(err, ErrToken) {
		t.Errorf("two tokens: %v, %v", c, err)
	}
	for _, b := range []string{"", "x", "-----BEGIN X-----\n-----END X-----\n", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"} {
		if _, err := ParseKey(true, []byte(b)); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

func FuzzRules(f *testing.F) {
	s, err := Compile("owner", []Rule{{Path: "/u/{owner}/**"}, {Header: "X-Owner"}, {Cookie: "sid"}, {Claim: "a.b"}, {Address: true}}, hasher(f))
	if err != nil {
		f.Fatal(err)
	}
	tokens, err := NewTokens(nil, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("/u/a", "x", "sid=1; sid=2", "Bearer eyJhbGciOiJub25lIn0.eyJhIjp7ImIiOiJjIn19.")
	f.Add("/", "", "sid=\"", "bearer ..")
	f.Fuzz(func(t *testing.T, path, header, cookie, authorization string) {
		claims, err := tokens.Read([]string{authorization})
		if err != nil && (!errors.Is(err, ErrToken) || claims != nil) {
			t.Error(err)
		}
		r := Request{Path: Normal("/" + path), Header: http.Header{"X-Owner": {header}, "Cookie": {cookie}}, Claims: claims}
		v, unusable := s.Find(&r)
		if len(v) > 1024 || v == "" && !unusable && header != "" {
			t.Errorf("got %q %v", v, unusable)
		}
	})
}
