package strict

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
)

// answering returns a connection whose request is being answered and whose server
// has asked to be told when its client leaves.
func answering(t *testing.T) (c *Conn, client net.Conn, gone chan struct{}) {
	t.Helper()
	server, client := net.Pipe()
	t.Cleanup(func() { _, _ = server.Close(), client.Close() })
	gone = make(chan struct{})
	c = New(server, &Limits{Header: 1000, Marker: marker, HeaderTimeout: time.Minute, IdleTimeout: time.Minute}, clock.System())
	c.Watch(func() { close(gone) })
	go func() { _, _ = io.WriteString(client, get) }()
	if n, err := c.Read(make([]byte, 4096)); err != nil || n != len(get) {
		t.Fatal(n, err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != nil {
		t.Fatalf("the server's look for the client's end took %d bytes, %v", n, err)
	}
	return c, client, gone
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestAClientThatLeavesIsSeen(t *testing.T) {
	t.Parallel()
	c, client, gone := answering(t)
	c.Look()
	_ = client.Close()
	select {
	case <-gone:
		t.Error("a request that has only begun is watched")
	default:
	}
	c.Look()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody saw that the client has left")
	}
	c.Answered()
	if _, err := c.Read(make([]byte, 4096)); !errors.Is(err, io.EOF) {
		t.Errorf("then: %v", err)
	}
}

// What a client sends while it is watched is its next request, in the order of
// its bytes; a watch that ends leaves no deadline behind.
func TestWatchedBytesAreTheNextRequest(t *testing.T) {
	t.Parallel()
	for _, early := range []int{0, 1, len(get) - 1, len(get), len(get) + 3} {
		c, client, gone := answering(t)
		c.Look()
		c.Look()
		two := strings.ReplaceAll(get, "/ ", "/2 ") + strings.ReplaceAll(get, "/ ", "/3 ")
		if early > 0 {
			if _, err := io.WriteString(client, two[:early]); err != nil { // only the watch reads
				t.Fatal(err)
			}
		}
		c.Look()
		c.Answered()
		go func() { _, _ = io.WriteString(client, two[early:]) }()
		buffer, got := make([]byte, 4096), ""
		for len(got) < len(two) {
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatalf("%d bytes early: %v after %q", early, err, got)
			}
			got += string(buffer[:n])
			c.Answered()
		}
		if got != two {
			t.Errorf("%d bytes early: %q", early, got)
		}
		select {
		case <-gone:
			t.Errorf("%d bytes early: a client that is there was taken for gone", early)
		default:
		}
	}
}

// A watch may begin in the moment in which the request's answer ends.
func TestLookAndAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	c, client, gone := answering(t)
	stop := make(chan struct{})
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		for {
			select {
			case <-stop:
				return
			default:
				c.Look()
			}
		}
	}()
	buffer := make([]byte, 4096)
	for range 2000 {
		c.Answered()
		go func() { _, _ = io.WriteString(client, get) }()
		if n, err := c.Read(buffer); err != nil || n != len(get) {
			t.Fatal(n, err)
		}
		if n, err := c.Read(buffer[:1]); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	close(stop)
	<-looks
	select {
	case <-gone:
		t.Error("a client that is there was taken for gone")
	default:
	}
}
