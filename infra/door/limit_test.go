package door

import (
	"errors"
	"net"
	"testing"
)

// TestLimit: a connection beyond the limit waits for one to end, the end of the listener
// lets go of who waits, and half a connection can be closed.
func TestLimit(t *testing.T) {
	t.Parallel()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 1)
	dial := func() net.Conn {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	here := dial()
	dial()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.Close()
		}
		second <- err
	}()
	w, ok := first.(interface{ CloseWrite() error })
	if !ok || w.CloseWrite() != nil {
		t.Error("half of it can't be closed")
	}
	if n, err := here.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := here.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := first.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("the other half: %d bytes, %v", n, err)
	}
	select {
	case err := <-second:
		t.Errorf("beyond the limit: %v", err)
	default:
	}
	if err := errors.Join(first.Close(), <-second); err != nil {
		t.Error(err)
	}
	_ = first.Close() // frees its slot once
	dial()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := l.Accept()
		second <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-second; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
