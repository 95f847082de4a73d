package topology

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// writePair writes a certificate with a serial number, and its key.
func writePair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if name == "" {
			continue
		}
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		// Whatever the file system's clock shows, it is another time than before.
		at := time.Date(2026, 1, int(serial), 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if _, err := newCertificate(cert, key, clock.System(), zerolog.Nop()); err == nil {
		t.Error("without files there is one")
	}
	writePair(t, cert, key, 1)
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	c, err := newCertificate(cert, key, manual, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	serves := func(want int64) {
		t.Helper()
		got, err := c.get(nil)
		if err != nil || got.Leaf.SerialNumber.Int64() != want {
			t.Errorf("serves %v, %v, expected %d", got.Leaf.SerialNumber, err, want)
		}
	}
	writePair(t, cert, key, 2)
	serves(1) // files are not looked at for each connection
	manual.Advance(lookAtFiles)
	serves(2)
	writePair(t, cert, "", 3) // its key is not there yet
	manual.Advance(lookAtFiles)
	serves(2)
	writePair(t, cert, key, 4)
	manual.Advance(lookAtFiles)
	serves(4)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	manual.Advance(lookAtFiles)
	serves(4)
}
