package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"penstock/infra/bus/bustest"
)

// coderOf is a configuration with one coder, of what is put into it.
func coderOf(more, url string) string {
	return fmt.Sprintf("%scoders:\n  - {name: objects, site: a, listen: \"127.0.0.1:9200\", %s, stores: [{name: east-1, url: %q}]}\n", sites, more, url)
}

func put(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.WriteFile(at, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// pair writes a certificate that ends then, and its key.
func pair(t *testing.T, dir, name string, until time.Time) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return put(t, dir, name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		put(t, dir, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func TestFilesOfCoders(t *testing.T) {
	d := t.TempDir()
	good, bad := put(t, d, "keys", []byte("client a-secret-of-some-length\n")), put(t, d, "short", []byte("client short\n"))
	token, empty, none := put(t, d, "token", []byte("s3cret\n")), put(t, d, "empty", []byte("\n")), filepath.Join(d, "none")
	cert, key := pair(t, d, "new", time.Now().Add(time.Hour))
	old, oldKey := pair(t, d, "old", time.Now().Add(-time.Hour))
	tls := func(cert, key string) string {
		return fmt.Sprintf("keys_file: %q, tls: {cert: %q, key: %q}", good, cert, key)
	}
	admin := func(listen, token string) string {
		return fmt.Sprintf("keys_file: %q, admin: %q, token_file: %q", good, listen, token)
	}
	for name, c := range map[string]struct {
		more, what string
		verdict    Verdict
		says       string
	}{
		"keys":                         {fmt.Sprintf("keys_file: %q", good), "keys", Fine, "1 in "},
		"no keys file":                 {fmt.Sprintf("keys_file: %q", none), "keys", Broken, "no such file or directory the coder refuses to start: make the file"},
		"a secret that is short":       {fmt.Sprintf("keys_file: %q", bad), "keys", Broken, "short:1: secret of access key"},
		"a pair":                       {tls(cert, key), "certificate", Fine, "are a pair"},
		"a key of another":             {tls(cert, oldKey), "certificate", Broken, "must be a pair in PEM"},
		"no certificate":               {tls(none, key), "certificate", Broken, "no such file"},
		"one that has ended":           {tls(old, oldKey), "certificate", Look, "renew it"},
		"a token":                      {admin("127.0.0.1:9", token), "token", Fine, "can be read"},
		"no token file":                {admin("127.0.0.1:9", none), "token", Broken, "no such file or directory the coder refuses to start"},
		"an empty one":                 {admin("127.0.0.1:9", empty), "token", Broken, "put a token into it"},
		"an empty one where it is due": {admin("10.0.0.1:9", empty), "token", Broken, "put a token into it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(t.Context(), Options{Config: read(t, coderOf(c.more, "dir:"+d)), Coders: true})
			want(t, r, "configuration", c.what+" of coder objects", c.verdict, c.says)
		})
	}
	if r := Run(t.Context(), Options{Config: read(t, coderOf(fmt.Sprintf("keys_file: %q", none), "dir:"+d))}); r.Count(Broken) != 0 {
		t.Errorf("what was left out was looked at:\n%s", printed(t, r))
	}
	if r := Run(t.Context(), Options{Config: read(t, coderOf(tls(cert, key), "dir:"+d)), Coders: true}); r.Count(Broken)+r.Count(Look) != 0 {
		t.Errorf("a good one has findings:\n%s", printed(t, r))
	}
}

func TestStoresOfCoders(t *testing.T) {
	d := t.TempDir()
	keys := fmt.Sprintf("keys_file: %q", put(t, d, "keys", []byte("client a-secret-of-some-length\n")))
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.Method == http.MethodGet && q.URL.Path == "/blobs/p/objects/owner!": // the mark, which nobody made
			w.WriteHeader(http.StatusNotFound)
		case q.Method != http.MethodHead:
			t.Errorf("a look has sent %s %s", q.Method, q.URL)
			w.WriteHeader(http.StatusForbidden)
		case q.Header.Get("Authorization") == "":
			w.WriteHeader(http.StatusForbidden)
		case q.URL.Path != "/blobs/":
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer service.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	t.Setenv("EAST_ACCESS_KEY_ID", "access")
	t.Setenv("EAST_SECRET_ACCESS_KEY", "secret")
	bucket := func(name, endpoint, credentials string) string {
		return fmt.Sprintf("s3://%s/p?endpoint=%s&region=us-east-1&credentials=%s", name, endpoint, credentials)
	}
	for name, c := range map[string]struct {
		url     string
		verdict Verdict
		says    string
	}{
		"a folder":                 {"dir:" + d, Fine, "can be written to"},
		"a folder that is to be":   {"dir:" + d + "/new/one", Fine, "the first start makes it"},
		"a file":                   {"dir:" + d + "/keys", Broken, "is no folder let this user"},
		"below a file":             {"dir:" + d + "/keys/x", Broken, "let this user"},
		"a folder of the kernel":   {"dir:/proc/sys/penstock", Broken, "can't be made"},
		"one that is there":        {"dir:/proc/sys", Broken, "let this user"},
		"a bucket":                 {bucket("blobs", service.URL, "EAST"), Fine, "bucket blobs is reached"},
		"no such bucket":           {bucket("others", service.URL, "EAST"), Broken, "is the bucket made"},
		"no service":               {bucket("blobs", gone.URL, "EAST"), Broken, "is the endpoint right"},
		"no credentials":           {bucket("blobs", service.URL, "WEST"), Broken, "WEST_ACCESS_KEY_ID and WEST_SECRET_ACCESS_KEY are not set in the environment the coder refuses to start"},
		"a variable that is unset": {"s3://${PENSTOCK_NO_SUCH}/p", Broken, "PENSTOCK_NO_SUCH to be set"},
		"no bus":                   {"jetstream:blobs", Unknown, "was not reached"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(t.Context(), Options{Config: read(t, coderOf(keys, c.url)), Coders: true, Timeout: 5 * time.Second})
			want(t, r, "stores", "store east-1 of coder objects", c.verdict, c.says)
		})
	}
	if left, err := os.ReadDir(d); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	b := bustest.Start(t, listening)
	r := onBus(t, b, Options{Config: read(t, coderOf(keys, "jetstream:blobs")), Coders: true})
	want(t, r, "stores", "store east-1 of coder objects", Fine, "the bus is reached")
	if _, err := bustest.Client(t, b).JS.Stream(t.Context(), "CHUNKS_blobs"); err == nil {
		t.Error("the look has made the stream")
	}
}

// TestACapBelowOneRead: the note of the configuration is among the findings.
func TestACapBelowOneRead(t *testing.T) {
	r := Run(t.Context(), Options{Config: read(t, sites+coders+"coding: {max_read_price: 0.1}")})
	want(t, r, "configuration", "file", Look, "the cap is 1 (k in the layout spread); prices.store_reads is 0.4: raise the cap")
}
