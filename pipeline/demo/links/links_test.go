package links

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo listens and sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestALinkDelaysBothWays(t *testing.T) {
	const oneWay = 40 * time.Millisecond
	l, err := Open(Options{Name: "x", To: echo(t), OneWay: oneWay, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Letters sent at once are there after one round trip, not after as many as
	// there are.
	sent := time.Now()
	want := bytes.Repeat([]byte("letters "), 10)
	for i := range want {
		if _, err := c.Write(want[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	took := time.Since(sent)
	if !bytes.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if took < 2*oneWay || took > 2*oneWay+time.Second {
		t.Errorf("a round trip took %v, of two times %v", took, oneWay)
	}
}

func TestALinkToNobodyCloses(t *testing.T) {
	at := echo(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	for _, to := range []string{gone, at} {
		k, err := Open(Options{Name: "x", To: to, OneWay: time.Millisecond, Logger: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", k.Address())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("x"))
		n, err := c.Read(make([]byte, 1))
		if (to == gone) != (err != nil || n == 0) {
			t.Errorf("to %s: %d bytes, %v", to, n, err)
		}
		_ = c.Close()
		k.Close()
		k.Close()
		if c, err := net.Dial("tcp", k.Address()); err == nil {
			_ = c.Close()
			t.Error("a closed link listens")
		}
	}
}

func TestAMeshReachesPlacesOverTheirDistance(t *testing.T) {
	serve := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	near, far := Place{Name: "near", Lat: 0, Lon: 0, Address: serve("near")}, Place{Name: "far", Lat: 0, Lon: 20, Address: serve("far")}
	m, err := Connect(zerolog.Nop(), Between, near, far)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rtt := Between(near, far)
	if rtt < 49*time.Millisecond || rtt > 50*time.Millisecond { // 20 degrees are 2,224 km
		t.Fatalf("round trip %v", rtt)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: m.Dial("near")}}
	defer client.CloseIdleConnections()
	for _, p := range []Place{near, far} {
		if a, err := m.Address("near", p.Name); err != nil || (a == p.Address) != (p.Name == "near") {
			t.Errorf("address of %s: %s, %v", p.Name, a, err)
		}
		sent := time.Now()
		r, err := client.Get("http://" + p.Address)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || string(b) != p.Name {
			t.Errorf("%s answered %q, %v", p.Name, b, err)
		}
		if took := time.Since(sent); took < Between(near, p)-2*time.Millisecond { // whole ms each way
			t.Errorf("%s took %v, the round trip is %v", p.Name, took, Between(near, p))
		}
	}
	if _, err := m.Address("near", "nowhere"); !errors.Is(err, ErrNoLink) {
		t.Errorf("a place that isn't there: %v", err)
	}
}
