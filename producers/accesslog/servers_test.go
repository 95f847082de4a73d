package accesslog

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/testserver"
	"penstock/schemas/event"
)

// nginxFormats are log_format strings as people have them.
var nginxFormats = map[string]string{
	"combined": `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`,
	"times": `$remote_addr:$remote_port $msec "$request" $status $body_bytes_sent $request_length $upstream_addr $upstream_status ` +
		`$upstream_connect_time $upstream_header_time $upstream_response_time $request_time`,
	"json": `{"t":"$time_iso8601","a":"$remote_addr","m":"$request_method","u":"$request_uri","s":$status,"b":$body_bytes_sent,` +
		`"up":"$upstream_addr","ut":"$upstream_response_time","rt":$request_time,"ua":"$http_user_agent","id":"$request_id"}`,
}

// send writes raw requests to an address, one connection each, and waits for the
// answers' ends.
func send(t *testing.T, address string, requests ...string) {
	t.Helper()
	for _, request := range requests {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// someRequests are three that are served and one that is none.
func someRequests(host string) []string {
	const once = "Connection: close\r\n"
	return []string{
		"GET /a/b?c=d HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: quoted \"x\\y\" é\r\n" + once + "\r\n",
		"POST /caf%C3%A9 HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 5\r\n" + once + "\r\nhello",
		"GET /away HTTP/1.1\r\nHost: " + host + "\r\n" + once + "\r\n",
		"\x16\x03\x01\x02\r\n\r\n",
	}
}

// TestRealNGINX lets Debian's NGINX write logs of its own formats, in front of a
// server that answers, and one that does not before one that does: what it writes
// is read, with the server that owns the answer.
func TestRealNGINX(t *testing.T) {
	back := testserver.NGINX(t, 1, func(address, _ string) string {
		return fmt.Sprintf("server { listen %s; location / { return 200 'from behind'; } }", address)
	})
	var logs string
	front := testserver.NGINX(t, 1, func(address, folder string) string {
		logs = folder
		var b, on strings.Builder
		for name, format := range nginxFormats {
			escape := ""
			if name == "json" {
				escape = "escape=json "
			}
			if name != "combined" {
				fmt.Fprintf(&b, "log_format %s %s'%s';\n", name, escape, format)
			}
			fmt.Fprintf(&on, "access_log %s/%s.log %s; ", folder, name, name)
		}
		// Nobody listens on port 1.
		fmt.Fprintf(&b, "upstream two { server 127.0.0.1:1; server %s backup; }\n", back.Address)
		fmt.Fprintf(&b, "server { listen %s; %s location / { proxy_pass http://%s; } location /away { proxy_pass http://two; } }\n", address, &on, back.Address)
		return b.String()
	})
	start := time.Now().Add(-2 * time.Second)
	send(t, front.Address, someRequests(front.Address)...)
	for name, format := range nginxFormats {
		log := written(t, filepath.Join(logs, name+".log"), 4)
		named := "nginx:" + format
		if name == "json" {
			named = "nginx:escape=json " + format
		}
		got := parseLog(t, log, ChoiceOptions{Name: named, Sample: log})
		if len(got.rows) != 4 || len(got.faults) > 0 {
			t.Fatalf("%s: %d rows, %s\n%s", name, len(got.rows), got.malformed(), log)
		}
		rows := got.rows
		for i, want := range []struct {
			owner, class string
			op           event.Op
			status       int32
		}{{"a", "", event.Read, 200}, {"caf%C3%A9", "", event.Write, 200}, {"away", "", event.Read, 200}, {"", ClassBadRequest, event.Read, 400}} {
			r := &rows[i]
			at := time.UnixMicro(r.Time)
			if r.Owner != want.owner || r.Class != want.class || r.Op != want.op || r.Status != want.status || at.Before(start) || at.After(time.Now().Add(2*time.Second)) || r.User == "" {
				t.Errorf("%s row %d: %s", name, i+1, text(r))
			}
		}
		if rows[0].User != rows[3].User || rows[0].Bytes < int64(len("from behind")) {
			t.Errorf("%s: %s\n%s", name, text(&rows[0]), text(&rows[3]))
		}
		if name != "combined" && (rows[0].ToServer != back.Address || rows[2].ToServer != back.Address || rows[3].ToServer != "" || rows[0].Service < 0 || rows[0].Network == event.NullInt) {
			t.Errorf("%s: the last of several owns the answer\n%s\n%s\n%s", name, log, text(&rows[0]), text(&rows[2]))
		}
		if name == "combined" {
			if _, choice, err := Open(ChoiceOptions{Sample: log}, Options{Key: []byte("k")}); err != nil || choice.Format != "combined" || choice.Confidence != 1 {
				t.Errorf("not recognised: %s, %v", choice, err)
			}
		}
	}
}

// written waits until a log has so many lines.
func written(t *testing.T, path string, lines int) []byte {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if err == nil && bytes.Count(b, []byte{'\n'}) >= lines {
			return b
		}
		if time.Now().After(late) {
			t.Fatalf("%d lines expected: %v\n%s", lines, err, b)
		}
	}
}

// TestRealHAProxy lets Debian's HAProxy send its HTTP log, and one with a format
// of its own, to a syslog server, and reads both.
func TestRealHAProxy(t *testing.T) {
	back := testserver.NGINX(t, 1, func(address, _ string) string {
		return fmt.Sprintf("server { listen %s; location / { return 200 'from behind'; } }", address)
	})
	const own = `%{+Q}o %ci:%cp %trg %{+Q}HM %HPO %ST %B %U %b %s %TR/%Tw/%Tc/%Tr/%Ta %[capture.req.hdr(0)] %ID %{-Q}tsc`
	for name, format := range map[string]string{"haproxy": "option httplog", "haproxy:" + own: "log-format \"" + own + "\"\n  unique-id-format %{+X}o-%ci-%rt"} {
		sink, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Close()
		front := testserver.HAProxy(t, func(address, _ string) string {
			return fmt.Sprintf(`global
  log %s len 8192 format rfc3164 local0
defaults
  mode http
  log global
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend web
  bind %s
  capture request header Host len 40
  capture response header Server len 40
  %s
  default_backend app
backend app
  server one %s
`, sink.LocalAddr(), address, format, back.Address)
		})
		send(t, front.Address, someRequests(front.Address)...)
		log := received(t, sink, "/a/b", "/caf", "/away", "<BADREQ>")
		got := parseLog(t, log, ChoiceOptions{Name: name, Sample: log})
		if got.choice.Wrapping != WrapSyslog || len(got.faults) > 0 {
			t.Fatalf("%s: %s, %s\n%s", name, got.choice, got.malformed(), log)
		}
		var served, bad int
		for i := range got.rows {
			r := &got.rows[i]
			switch {
			case r.Status == 400:
				bad++
				if r.Class != ClassBadRequest || r.ToServer != "" {
					t.Errorf("%s: %s", got.lines[i], text(r))
				}
			case r.Owner == "a" || r.Owner == "caf%C3%A9" || r.Owner == "away":
				served++
				if r.Status != 200 || r.ToComponent != "app" || r.ToServer != "one" || r.Wait != 0 || r.Service < 0 || r.Network == event.NullInt ||
					(r.Op == event.Write) != (r.Owner == "caf%C3%A9") || time.Since(time.UnixMicro(r.Time)).Abs() > 26*time.Hour {
					t.Errorf("%s: %s", got.lines[i], text(r))
				}
			}
		}
		// The check that it listens is a connection without a request, too.
		if served != 3 || bad < 1 {
			t.Errorf("%s: %d served, %d bad\n%s", name, served, bad, log)
		}
		if name == "haproxy" {
			if _, choice, err := Open(ChoiceOptions{Sample: log}, Options{Key: []byte("k")}); err != nil || choice.Format != "haproxy" {
				t.Errorf("not recognised: %s, %v", choice, err)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// received reads datagrams until each of the words stood in one. HAProxy's own
// remarks on its proxies are left out.
func received(t *testing.T, sink net.PacketConn, words ...string) []byte {
	t.Helper()
	if err := sink.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var log []byte
	buf := make([]byte, 64<<10)
	for {
		n, _, err := sink.ReadFrom(buf)
		if err != nil {
			t.Fatalf("%v after\n%s", err, log)
		}
		line := bytes.TrimRight(buf[:n], "\n\x00")
		if bytes.Contains(line, []byte("Proxy ")) {
			continue
		}
		log = append(append(log, line...), '\n')
		all := true
		for _, w := range words {
			all = all && bytes.Contains(log, []byte(w))
		}
		if all {
			return log
		}
	}
}
