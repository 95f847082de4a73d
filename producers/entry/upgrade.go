package entry

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// switchProtocols makes a connection of client and server out of a request, as
// WebSocket asks for. It ends when either side has ended and what it had sent
// has been handed on, or when the entry point has drained.
func (x *exchange) switchProtocols(resp *http.Response) {
	server, ok := resp.Body.(io.ReadWriteCloser)
	if x.tunnel == "" || !ok || !strings.EqualFold(first(resp.Header, "Upgrade"), x.tunnel) {
		x.kind = kindFailed
		x.refuse(http.StatusBadGateway, "upgrade", "the server changed to a protocol that nobody asked for")
		return
	}
	protocol := first(resp.Header, "Upgrade")
	strip(resp.Header)
	conn, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.kind = kindFailed
		x.refuse(http.StatusBadGateway, "upgrade", "the connection can't change its protocol")
		return
	}
	defer conn.Close()
	h := resp.Header
	h["Connection"], h["Upgrade"] = oneUpgrade, []string{protocol}
	x.label(h)
	x.status = http.StatusSwitchingProtocols
	head := &http.Response{StatusCode: resp.StatusCode, Status: resp.Status, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if err := errors.Join(head.Write(buffered), buffered.Flush()); err != nil {
		x.gone = true
		return
	}
	if !x.client.door.tunnels.add(conn) {
		return // drained meanwhile
	}
	defer x.client.door.tunnels.remove(conn)
	x.e.m.tunnels.Inc()
	defer x.e.m.tunnels.Dec()
	up, down := x.tunnelBoth(conn, buffered, server)
	x.sent = down
	x.received = up
}

// tunnelBoth copies both ways until both have ended, and returns how many bytes
// went to the server and to the client.
func (x *exchange) tunnelBoth(client net.Conn, buffered io.Reader, server io.ReadWriteCloser) (up, down int64) {
	done := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(server, buffered) // an end is an end, whatever the reason
		// Nothing more comes from the client. A server that has said all ends too;
		// one that has not would never be told otherwise.
		if half, ok := server.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
			_ = server.Close()
		}
		done <- n
	}()
	down, _ = io.Copy(struct{ io.Writer }{client}, server) // without ReadFrom, which would take the raw connection
	_ = client.Close()
	_ = server.Close()
	return <-done, down
}
