package otlp

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"penstock/infra/door"
)

const token = "a token of many bytes"

// Clients without the token are refused by each protocol and told why; spans of nobody
// else are taken.
func TestToken(t *testing.T) {
	w := start(t, func(o *Options) { o.Token = token })
	client := w.client(t)
	req := requestOf("cart", "us", spanOf(1, 2, 0, serverKind, 0, ms))
	for _, sent := range []string{"", token, bearer, bearer + token[:len(token)-1], "bearer " + token} {
		ctx := metadata.AppendToOutgoingContext(testContext(t), "authorization", sent, sharedKey, "1")
		if _, err := client.Export(ctx, req); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%q: %v, expected UNAUTHENTICATED", sent, err)
		}
		if code := w.postWith(t, sent, marshal(t, req)); code != http.StatusUnauthorized {
			t.Errorf("%q: %d, expected 401", sent, code)
		}
	}
	ctx := metadata.AppendToOutgoingContext(testContext(t), "authorization", bearer+token)
	if _, err := client.Export(ctx, req); err != nil {
		t.Error(err)
	}
	if code := w.postWith(t, bearer+token, marshal(t, req)); code != http.StatusOK {
		t.Errorf("with the token: %d", code)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if st := w.Stats(); st.Read != 2 {
		t.Errorf("%d spans taken, expected 2", st.Read)
	}
}

func (w *world) postWith(t testing.TB, authorization string, body []byte) int {
	t.Helper()
	req := request(t, w.http, typeProto, body)
	req.Header.Set("Authorization", authorization)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// Without a token nobody listens for others than this machine, and a page of a browser
// here that names another host is refused.
func TestLoopback(t *testing.T) {
	everywhere, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	for _, short := range []string{"", "short"} {
		if _, err := New(Options{HTTP: everywhere, Publisher: newSink(), Token: short}); !errors.Is(err, door.ErrToken) {
			t.Errorf("token %q: %v, expected ErrToken", short, err)
		}
	}
	if _, err := New(Options{HTTP: everywhere, Publisher: newSink(), Token: token}); err != nil {
		t.Error(err)
	}
	w := start(t, nil)
	req := request(t, w.http, typeProto, nil)
	req.Host = "example.org"
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("another host: %d", res.StatusCode)
	}
}

// certificate is one for 127.0.0.1, signed by itself, and who trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}, MinVersion: tls.VersionTLS12}, pool
}

// With TLS and a token both protocols serve, receivers share traces, and who speaks
// without encryption is not understood.
func TestPeersBehindTLS(t *testing.T) {
	config, pool := certificate(t)
	trust := grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	ws := startPeers(t, 2, func(_ int, o *Options) {
		o.TLS, o.Token, o.PeerDial = config, token, []grpc.DialOption{trust}
	})
	ctx := metadata.AppendToOutgoingContext(testContext(t), "authorization", bearer+token)
	conn, err := grpc.NewClient(ws[0].grpc, trust)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const calls = 20
	for n := range byte(calls) {
		if _, err := collector.NewTraceServiceClient(conn).Export(ctx, requestOf("shop", "eu", spanOf(n+1, 1, 0, clientKind, 0, 5*ms))); err != nil {
			t.Fatal(err)
		}
		req := request(t, "https"+ws[1].http[len("http"):], typeProto, marshal(t, requestOf("cart", "us", spanOf(n+1, 2, 1, serverKind, ms, 4*ms))))
		req.Header.Set("Authorization", bearer+token)
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := ws[0].client(t).Export(short, requestOf("shop", "eu", spanOf(99, 1, 0, clientKind, 0, 5*ms))); err == nil {
		t.Error("spans are taken without encryption")
	}
	total := 0
	for _, w := range ws {
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		rows := w.sink.all()
		if len(rows) == 0 {
			t.Error("a receiver made no call: traces are not shared")
		}
		total += len(rows)
	}
	if total != calls {
		t.Errorf("%d calls, expected %d", total, calls)
	}
}
