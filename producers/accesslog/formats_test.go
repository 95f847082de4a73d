package accesslog

import "testing"

// TestKnownFormats has a line of each format that Penstock knows and no folder
// of logs has, and what becomes of it. The format is recognised by the line.
func TestKnownFormats(t *testing.T) {
	for _, c := range []struct{ format, log, want string }{
		{
			"nginx", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" rt=0.300 uct="0.010" uht="0.210" urt="0.260"`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=200000 network=100000",
		},
		{
			"nginx", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" "192.0.2.9, 10.0.0.1"`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5",
		},
		{
			// Seconds, not Apache's microseconds.
			"nginx", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 0.005`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=5000",
		},
		{
			"nginx", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 0.305 0.001, 0.004`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=4000 network=301000",
		},
		{
			"nginx", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 12 0.305 [default-web-80] [] 10.0.0.1:80, 10.0.0.2:80 0, 5 0.001, 0.300 502, 200 4f2b`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=300000 network=5000 to=default-web-80 server=10.0.0.2:80 id=4f2b",
		},
		{
			"nginx", `{"time_iso8601":"2020-06-08T08:04:43+00:00","remote_addr":"192.0.2.1","request":"GET /a HTTP/1.1","status":"200","body_bytes_sent":"5","request_time":"0.005","upstream_addr":"10.0.0.1:80, 10.0.0.2:80","upstream_connect_time":"-, 0.001","upstream_header_time":"-, 0.003"}`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=2000 network=3000 server=10.0.0.2:80",
		},
		{
			"apache", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 2500001`,
			"2020-06-08T08:04:45.500001Z read owner=a status=200 bytes=5 service=2500001",
		},
		{
			"apache", `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 - "-" "x" 300 500`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=800",
		},
		{
			"vhost", `example.org:443 192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x"`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 to=example.org",
		},
		{
			"envoy", `[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 4 3 "-" "curl/7.73.0" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:37652 outbound_.8000_._.httpbin default`,
			"2020-11-25T21:26:18.413Z read owner=status status=418 bytes=135 service=3000 network=1000 to=inbound|8000|| server=127.0.0.1:80 class=default id=84961386",
		},
		{
			"envoy", `[2020-11-25T21:26:18.409Z] "- - -" 0 - 12 135 60000 - "-" "-" "-" "-" "10.0.0.2:6379"`,
			"2020-11-25T21:27:18.409Z read bytes=147 service=60000000 server=10.0.0.2:6379 class=tcp",
		},
		{
			// Without the fields that say when it began, its own time is the end.
			"traefik", `{"ClientHost":"192.0.2.1","DownstreamContentSize":5,"DownstreamStatus":200,"Duration":1500000000,"OriginDuration":1000000000,"RequestMethod":"GET","RequestPath":"/a","time":"2020-06-08T08:04:43Z"}`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=1000000 network=500000",
		},
		{
			"json", `{"start_time":"2020-06-08T08:04:43Z","duration":"1.5s","method":"GET","path":"/a","status":200,"client_ip":"192.0.2.1"}`,
			"2020-06-08T08:04:44.5Z read owner=a status=200 bytes=0 service=1500000",
		},
		{
			"json", `{"@timestamp":"2020-06-08T08:04:43.5Z","client":{"ip":"192.0.2.1"},"http":{"request":{"method":"PUT"},"response":{"status_code":204,"body":{"bytes":7}}},"url":{"original":"/a"},"event":{"duration":1500000},"trace":{"id":"0af7651916cd43dd8448eb211c80319c"}}`,
			"2020-06-08T08:04:43.5Z write owner=a status=204 bytes=7 service=1500 trace=0af7651916cd43dd8448eb211c80319c",
		},
		{
			"json", `{"level":"info","time":"2020-06-08T08:04:43Z","remote_ip":"192.0.2.1","method":"GET","uri":"/a?b","status":200,"latency":"1.5ms","bytes_out":3}`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=3 service=1500",
		},
		{
			"table", "date,c-ip,method,uri,code,size,latency_ms\n2020-06-08 08:04:43,192.0.2.1,POST,\"/a,b\",500,12,3.5",
			"2020-06-08T08:04:43Z write owner=a,b status=500 bytes=12 service=3500",
		},
		{"iis", "#Software: IIS\n#Fields: date time s-ip cs-method cs-uri-stem c-ip sc-status sc-bytes cs-bytes time-taken\n2020-06-08 08:04:43 10.0.0.1 POST /a/b 192.0.2.1 200 500 300 46", "2020-06-08T08:04:43Z write owner=a status=200 bytes=800 service=46000 server=10.0.0.1"},
	} {
		got := parseLog(t, []byte(c.log), ChoiceOptions{Sample: []byte(c.log)})
		if got.choice.Format != c.format || len(got.rows) != 1 || text(&got.rows[0]) != c.want {
			t.Errorf("%s\n%s, %v", c.log, got.choice, got.faults)
			for i := range got.rows {
				t.Errorf(" got %s\nwant %s", text(&got.rows[i]), c.want)
			}
		}
		if len(got.rows) > 0 && got.rows[0].User == "" && c.format != "json" && got.rows[0].Class != "tcp" {
			t.Errorf("%s: no user", c.format)
		}
	}
}

// TestWhatIsNotSure: nothing is recognised by a guess that the line does not bear
// out: seconds of one digit are not Apache's microseconds, and what an application
// says of a path is no request.
func TestWhatIsNotSure(t *testing.T) {
	for _, line := range []string{
		`192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 0`,
		`{"level":"info","time":"2020-06-08T08:04:43Z","msg":"opened","path":"/etc/hosts"}`,
	} {
		_, choice, err := Open(ChoiceOptions{Sample: []byte(line)}, Options{Key: []byte("k")})
		if err != nil || choice.Matched != 0 {
			t.Errorf("%s: %s, %v", line, choice, err)
		}
	}
}

// TestNamedShapes: who names the server gets its usual formats, too; nothing is
// recognised as them, but as what they are.
func TestNamedShapes(t *testing.T) {
	const common = `192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5`
	for _, c := range []struct{ format, line string }{
		{"nginx", common + ` "-" "x"`},
		{"apache", common},
		{"apache", common + ` "-" "x"`},
		{"apache", "example.org:443 " + common + ` "-" "x"`},
	} {
		if r, fault := tryParse(open(t, c.format), c.line); fault != nil || r.Bytes != 5 || r.Owner != "a" {
			t.Errorf("%s: %s: %v, %s", c.format, c.line, fault, text(&r))
		}
		_, choice, err := Open(ChoiceOptions{Sample: []byte(c.line)}, Options{Key: []byte("k")})
		if err != nil || choice.Format == c.format || len(choice.Tried) > 0 {
			t.Errorf("%s: %s, %v", c.line, choice, err)
		}
	}
}

// TestPortsAndTheCache: one text may be an address, or an address with a port;
// which, its field says, not what was seen before.
func TestPortsAndTheCache(t *testing.T) {
	p := ofYAML(t, `{lines: [{text: 'A {t} {a} {u}'}, {text: 'B {t} {b} {u}'}], columns: {time: t, target: u, client: [a, {from: b, port: true}]}}`)
	const address = " 1577836800 2001:db8::1:443 /x"
	a, b := parseOne(t, p, "A"+address), parseOne(t, p, "B"+address)
	other := ofYAML(t, `{lines: [{text: 'B {t} {b} {u}'}], columns: {time: t, target: u, client: {from: b, port: true}}}`)
	if a.User == b.User || b.User != parseOne(t, other, "B"+address).User || b.User != parseOne(t, other, "B 1577836800 [2001:db8::1]:9 /x").User {
		t.Error("what the port belongs to depends on what came before")
	}
}
