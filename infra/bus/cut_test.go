package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/subject"
)

// TestCutAnswerIsUnknown throws away the acknowledgement of a fenced write that
// was stored. The writer hears of no conflict; when it sends the same again it
// is refused, and finds its own write as the last one.
func TestCutAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	proxy := bustest.NewProxy(t, b.URL())
	far, err := bus.Open(testContext(t), bus.Options{URL: proxy.URL, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	c, near := bustest.Client(t, far), bustest.Client(t, b)
	proxy.Deaf(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.PublishFenced(ctx, flush("mine", 1), 0)
	if err == nil || errors.Is(err, bus.ErrConflict) {
		t.Fatalf("a write whose answer is cut: %v", err)
	}
	proxy.Deaf(false)
	proxy.Cut()
	waitFor(t, "the write", func() bool {
		m, err := near.Last(testContext(t), subject.WindowsStream, "windows.fast.0")
		return err == nil && m.Header["Penstock-Flush"][0] == "mine"
	})
	// What is sent before the client sees the cut is unknown too, and quickly.
	waitFor(t, "an answer", func() bool {
		_, err = c.PublishFenced(testContext(t), flush("mine", 1), 0)
		return !errors.Is(err, bus.ErrLost) && !errors.Is(err, nats.ErrReconnectBufExceeded)
	})
	if !errors.Is(err, bus.ErrConflict) {
		t.Errorf("sent again: %v", err)
	}
	m, err := near.Last(testContext(t), subject.WindowsStream, "windows.fast.0")
	if err != nil || m.Header["Penstock-Flush"][0] != "mine" || m.Seq != 1 {
		t.Errorf("last: %+v, %v", m, err)
	}
}

// TestReaderThroughCuts cuts the connection of a reader again and again.
func TestReaderThroughCuts(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	proxy := bustest.NewProxy(t, b.URL())
	far, err := bus.Open(testContext(t), bus.Options{URL: proxy.URL, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	r, err := bustest.Client(t, far).Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := bustest.Client(t, b)
	for k := range 5 {
		publish(t, w, "events.0.web", 200)
		for i, m := range bustest.Take(t, r, 150) {
			if want := uint64(k*150 + i + 1); m.Seq != want {
				t.Fatalf("sequence %d, want %d", m.Seq, want)
			}
		}
		proxy.Cut()
	}
	if got := bustest.Take(t, r, 250); got[249].Seq != 1000 {
		t.Errorf("the last sequence is %d", got[249].Seq)
	}
}

// TestOldServerIsRefused connects to something that says it is Debian's NATS.
func TestOldServerIsRefused(t *testing.T) {
	t.Parallel()
	url := "nats://" + oldServer(t)
	_, err := bus.Open(testContext(t), bus.Options{URL: url, Logger: zerolog.Nop()})
	want := fmt.Sprintf("NATS at %s: version 2.9.25, need 2.15.3 or later: the NATS server is too old", url)
	if !errors.Is(err, bus.ErrVersion) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// oldServer is the address of something that says it is Debian's NATS.
func oldServer(t *testing.T) string {
	t.Helper()
	return scripted(t, talkOld)
}

// scripted is the address of something that talks as it is told to, with each
// who connects. The connection is closed at the end of the test.
func scripted(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() { talk(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

func talkOld(conn net.Conn) {
	fmt.Fprintf(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.9.25\",\"max_payload\":1048576,\"headers\":true,\"jetstream\":true}\r\n")
	for s := bufio.NewScanner(conn); s.Scan(); {
		if strings.HasPrefix(s.Text(), "PING") {
			fmt.Fprint(conn, "PONG\r\n")
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	url := "nats://" + testserver.FreeAddress(t)
	_, err := bus.Open(testContext(t), bus.Options{URL: url, Logger: zerolog.Nop()})
	if err == nil || !strings.Contains(err.Error(), url) {
		t.Errorf("opened with %v", err)
	}
}
