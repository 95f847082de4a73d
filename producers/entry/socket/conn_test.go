package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a connection, the first wrapped.
func pair(t testing.TB) (wrapped, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if other, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	wrapped = Wrap(c)
	t.Cleanup(func() { _, _ = wrapped.Close(), other.Close() })
	return wrapped, other
}

func TestBytesPassBothWays(t *testing.T) {
	t.Parallel()
	c, other := pair(t)
	sent := make([]byte, 3<<20) // more than the system takes at once
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(sent)
	go func() {
		_, _ = c.Write(sent)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	back := make(chan error, 1)
	go func() {
		_, err := io.Copy(other, struct{ io.Reader }{other}) // returns all to whom it came from
		_ = other.Close()
		back <- err
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d, %v", len(got), len(sent), err)
	}
	if err := <-back; err != nil {
		t.Error(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	if n, err := c.Read(nil); n != 0 || err != nil {
		t.Errorf("nothing asked for: %d, %v", n, err)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	c, _ := pair(t)
	_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	var network net.Error
	if n, err := c.Read(make([]byte, 9)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &network) || !network.Timeout() {
		t.Errorf("read: %d, %v", n, err)
	}
	// More than the sockets hold. How much of it went out is up to the machine.
	b := make([]byte, 64<<20)
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := c.Write(b); n == len(b) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write of what nobody takes: %d, %v", n, err)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	c, _ := pair(t)
	waits := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 9))
		waits <- err
	}()
	_ = c.Close()
	if err := <-waits; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of what is closed: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write to what is closed: %v", err)
	}
	c, other := pair(t)
	_ = other.(*net.TCPConn).SetLinger(0)
	_ = other.Close() // a reset
	_, err := c.Read(make([]byte, 9))
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) || op.Op != "read" {
		t.Errorf("a read of what was reset: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a write to what was reset: %v", err)
	}
}

func TestOthersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if Wrap(a) != a {
		t.Error("a pipe was wrapped")
	}
}

func TestNoAllocation(t *testing.T) {
	c, other := pair(t)
	b := make([]byte, 1024)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = c.Write(b)
		_, _ = io.ReadFull(other, b)
		_, _ = other.Write(b)
		_, _ = io.ReadFull(c, b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
