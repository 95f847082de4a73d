package accesslog

import (
	"errors"
	"strings"
	"testing"
)

// open returns a parser of a format as a user names it.
func open(t testing.TB, name string) *Parser {
	t.Helper()
	p, _, err := Open(ChoiceOptions{Name: name}, Options{Key: []byte("key of the tests"), Geo: atlas{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// dialectCase is a format string, a line of it, and what becomes of it.
type dialectCase struct{ about, format, line, want string }

func runDialect(t *testing.T, cases []dialectCase) {
	t.Helper()
	for _, c := range cases {
		if got := textOf(t, open(t, c.format), c.line); got != c.want {
			t.Errorf("%s\n%s\n%s\n got %s\nwant %s", c.about, c.format, c.line, got, c.want)
		}
	}
}

func TestNGINX(t *testing.T) {
	runDialect(t, []dialectCase{
		{
			"combined as NGINX writes it down",
			`nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`,
			`192.0.2.1 - bob b [08/Jun/2020:08:04:43 +0200] "PUT /a/b HTTP/1.1" 201 5 "-" "x \"y\""`,
			"2020-06-08T06:04:43Z write owner=a status=201 bytes=5",
		}, {
			"a directive with its name, parts and end",
			"nginx:log_format main '$remote_addr [$time_local] '\n  '\"$request\" $status $body_bytes_sent';",
			`192.0.2.1 [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 5`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5",
		}, {
			"one try: first byte less connect is service, the rest network",
			`nginx:$msec $remote_addr "$request" $status $body_bytes_sent $request_time $upstream_addr $upstream_connect_time $upstream_header_time $upstream_response_time`,
			`1591603483.250 192.0.2.1 "GET /a HTTP/1.1" 200 5 0.300 10.0.0.1:8080 0.010 0.210 0.260`,
			"2020-06-08T08:04:43.25Z read owner=a status=200 bytes=5 service=200000 network=100000 server=10.0.0.1:8080",
		}, {
			"three tries and an internal redirect, without quotes: the last owns the row",
			`nginx:$time_iso8601 "$request" $status $body_bytes_sent $upstream_addr $upstream_response_time $request_time`,
			`2020-06-08T08:04:43+00:00 "GET /a HTTP/1.1" 200 5 10.0.0.1:80, 10.0.0.2:80 : unix:/run/app.sock 0.100, 0.200 : 0.050 0.360`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=50000 network=310000 server=unix:/run/app.sock",
		}, {
			"the last try came to no answer: its time is missing, not 0",
			`nginx:$time_iso8601 "$request" $status $body_bytes_sent "$upstream_addr" "$upstream_header_time" $request_time`,
			`2020-06-08T08:04:43+00:00 "GET /a HTTP/1.1" 504 5 "10.0.0.1:80, 10.0.0.2:80" "0.100, -" 0.360`,
			"2020-06-08T08:04:43Z read owner=a status=504 bytes=5 service=360000 server=10.0.0.2:80",
		}, {
			"no upstream at all",
			`nginx:$time_iso8601 "$request" $status $body_bytes_sent $upstream_addr $upstream_response_time $request_time`,
			`2020-06-08T08:04:43+00:00 "GET /a HTTP/1.1" 200 5 - - 0.004`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=5 service=4000",
		}, {
			"JSON by hand, escaped; method and target for the request; bytes both ways",
			`nginx:escape=json {"t":"$time_iso8601","a":"$remote_addr","m":"$request_method","u":"$request_uri","s":$status,"b":$bytes_sent,"l":$request_length,"ua":"$http_user_agent","id":"$request_id","tp":"$http_traceparent","h":"$server_name"}`,
			`{"t":"2020-06-08T08:04:43+00:00","a":"192.0.2.1","m":"DELETE","u":"/caf\u00e9/\"x\"?q","s":204,"b":120,"l":80,"ua":"a \"b\"","id":"f0","tp":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","h":"shop"}`,
			"2020-06-08T08:04:43Z write owner=caf%C3%A9 status=204 bytes=200 to=shop id=f0 trace=0af7651916cd43dd8448eb211c80319c",
		}, {
			"an address with its port, IPv6; variables in braces; a tab",
			"nginx:${remote_addr}:${remote_port}\t$time_iso8601\t$request_method\t$uri\t$status",
			"2001:db8::1:4711\t2020-06-08T08:04:43.5Z\tGET\t/a/b\t200",
			"2020-06-08T08:04:43.5Z read owner=a status=200 bytes=0",
		}, {
			"a request that is none keeps status, bytes and times",
			`nginx:$time_iso8601 "$request" $status $body_bytes_sent $request_time`,
			`2020-06-08T08:04:43+00:00 "\x16\x03\x01" 400 157 0.010`,
			"2020-06-08T08:04:43Z read status=400 bytes=157 service=10000 class=bad-request",
		}, {
			"the mismatch is named by its variable",
			`nginx:$time_iso8601 "$request" $status $body_bytes_sent $request_time`,
			`2020-06-08T08:04:43+00:00 "GET / HTTP/1.1" 200 157 soon`,
			`malformed column 52, field request_time: got "soon", expected a time span of at most 100 years`,
		},
	})
	a, b := open(t, "nginx:${remote_addr}:${remote_port} $time_iso8601 $request_method $uri"), open(t, "nginx:$remote_addr $time_iso8601 $request_method $uri")
	if parseOne(t, a, "2001:db8::1:4711 2020-06-08T08:04:43.5Z GET /").User != parseOne(t, b, "2001:db8::1 2020-06-08T08:04:43.5Z GET /").User {
		t.Error("an address with a port is another user than without")
	}
}

func TestApache(t *testing.T) {
	runDialect(t, []dialectCase{
		{
			"combined as Apache writes it down, with escaped quotes",
			`apache:%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"`,
			`192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 304 - "-" "x"`,
			"2020-06-08T08:04:43Z read owner=a status=304 bytes=0",
		}, {
			"a directive with its name; virtual host and port; bytes both ways with heads; %D in µs from the start",
			`apache:LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %I %O %D" vhost_io`,
			`shop.example.org:443 192.0.2.1 - - [08/Jun/2020:08:04:43 +0000] "POST /a HTTP/1.1" 200 500 "-" "x" 300 500 2500001`,
			"2020-06-08T08:04:45.500001Z write owner=a status=200 bytes=800 service=2500001 to=shop.example.org",
		}, {
			"seconds, as milliseconds; the original status where the final one lacks; a condition",
			`apache:%a %t "%r" %s %B %{ms}T %!200,304{X-Id}i`,
			`192.0.2.1 [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 302 0 17 -`,
			"2020-06-08T08:04:43.017Z read owner=a status=302 bytes=0 service=17000",
		}, {
			"%T in whole seconds; path and query together; protocol",
			`apache:%{c}a %t "%m %U%q %H" %>s %b %T %k %X`,
			`192.0.2.1 [08/Jun/2020:08:04:43 +0000] "GET /a/b?c=d HTTP/1.1" 200 17 3 0 +`,
			"2020-06-08T08:04:46Z read owner=a status=200 bytes=17 service=3000000",
		}, {
			"a time in parts, with a fraction and a zone; a worker of mod_proxy; a unique id; 100 %",
			`apache:%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t %h "%r" %>s %b %{BALANCER_WORKER_NAME}e %L 100%%`,
			`08/Jun/2020 08:04:43.250 -0700 192.0.2.1 "GET /a HTTP/1.1" 200 1 http://10.0.0.7:8080 X17 100%`,
			"2020-06-08T15:04:43.25Z read owner=a status=200 bytes=1 server=10.0.0.7:8080 id=X17",
		}, {
			"the time of the end, since 1970, is not moved",
			`apache:%{end:usec}t %h "%r" %>s %b %D`,
			`1591603483250000 192.0.2.1 "GET /a HTTP/1.1" 200 1 1000000`,
			"2020-06-08T08:04:43.25Z read owner=a status=200 bytes=1 service=1000000",
		}, {
			"several clients before blanks",
			`apache:%{X-Forwarded-For}i %t "%r" %>s %b`,
			`192.0.2.1, 198.51.100.7 [08/Jun/2020:08:04:43 +0000] "GET /a HTTP/1.1" 200 1`,
			"2020-06-08T08:04:43Z read owner=a status=200 bytes=1",
		},
	})
}

const haproxyHTTP = `haproxy:%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r`

func TestHAProxy(t *testing.T) {
	const head = `192.0.2.1:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 `
	const tail = ` - - ---- 1/1/1/1/0 0/0 `
	runDialect(t, []dialectCase{
		{
			"captures of both sides",
			haproxyHTTP,
			head + `10/20/30/69/139 200 2750` + tail + `{1wt.eu|a b} {nginx} "GET /index.html HTTP/1.1"`,
			"2009-02-06T12:14:14.794Z read owner=index.html status=200 bytes=2750 wait=20000 service=69000 network=50000 to=static server=srv1",
		}, {
			"captures of one side",
			haproxyHTTP,
			head + `10/0/30/69/109 200 2750` + tail + `{1wt.eu} "GET /a HTTP/1.1"`,
			"2009-02-06T12:14:14.764Z read owner=a status=200 bytes=2750 wait=0 service=69000 network=40000 to=static server=srv1",
		}, {
			"a request that is none: no server, and timers that were not reached",
			haproxyHTTP,
			`192.0.2.1:33313 [06/Feb/2009:12:14:14.655] fe fe/<NOSRV> -1/-1/-1/-1/5 400 187 - - PR-- 0/0/0/0/0 0/0 "<BADREQ>"`,
			"2009-02-06T12:14:14.66Z read status=400 bytes=187 service=5000 to=fe class=bad-request",
		}, {
			"the client went: no status",
			haproxyHTTP,
			head + `0/-1/-1/-1/7 -1 0 - - CQVN 0/0/0/0/0 0/0 "GET /a HTTP/1.1"`,
			"2009-02-06T12:14:14.662Z read owner=a status=0 bytes=0 service=7000 to=static server=srv1",
		}, {
			"logged before the end (option logasap)",
			haproxyHTTP,
			head + `9/10/7/14/+30 200 +243` + tail + `"GET /a HTTP/1.1"`,
			"2009-02-06T12:14:14.685Z read owner=a status=200 bytes=243 wait=10000 service=14000 network=6000 to=static server=srv1",
		}, {
			"columns behind the request, as of the HTTPS log",
			"haproxy",
			head + `9/10/7/14/30 200 243` + tail + `"GET /a HTTP/1.1" 0/0000000000000000/0/0/0 example.org/TLSv1.3/TLS_AES_256_GCM_SHA384`,
			"2009-02-06T12:14:14.685Z read owner=a status=200 bytes=243 wait=10000 service=14000 network=6000 to=static server=srv1",
		}, {
			"a TCP session is traffic of a server, and no request",
			"haproxy",
			`192.0.2.1:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 10/20/5007 212 -- 0/0/0/0/3 0/0`,
			"2009-02-06T12:12:56.45Z read bytes=212 wait=10000 service=4997000 to=bck server=srv1 class=tcp",
		}, {
			"a format of one's own: quotes by a flag for all, a sample, method and path, a zone; #22 is a quote",
			`haproxy:%{+Q}o %ci %[capture.req.hdr(0)] %{-Q}trl %HM %HU %ST %B %U %Ta %ID`,
			`"192.0.2.1" "x#22y" 06/Feb/2009:12:14:14 +0100 "PATCH" "/a#22b/c" 200 10 20 30 "7F"`,
			`2009-02-06T11:14:14.03Z write owner=a"b status=200 bytes=30 service=30000 id=7F`,
		},
	})
}

func TestEnvoyText(t *testing.T) {
	const usual = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %BYTES_SENT% `
	runDialect(t, []dialectCase{
		{
			"no upstream service time: the first byte less the request sent",
			`envoy:` + usual + `%DURATION% %REQUEST_TX_DURATION% %RESPONSE_DURATION% %UPSTREAM_HOST%\n`,
			`[2016-04-15T20:17:00.310Z] "GET /a HTTP/2" 200 5 100 10 80 10.0.0.1:80`,
			"2016-04-15T20:17:00.41Z read owner=a status=200 bytes=5 service=70000 network=30000 server=10.0.0.1:80",
		}, {
			"a time in a form of its own, a length, a header in small letters, IPv6 with a port",
			`envoy:%START_TIME(%Y/%m/%d %H:%M:%S.%3f)% %DOWNSTREAM_REMOTE_ADDRESS% %REQ(:method):10% %REQ(:PATH)% %RESPONSE_CODE% %BYTES_RECEIVED% %BYTES_SENT% %DURATION%`,
			`2016/04/15 20:17:00.310 [2001:db8::1]:4711 PUT /a 503 10 20 5`,
			"2016-04-15T20:17:00.315Z write owner=a status=503 bytes=30 service=5000",
		}, {
			"what Envoy could not read as a request",
			`envoy:` + usual + `%DURATION%`,
			`[2016-04-15T20:17:00.310Z] "- - HTTP/1.1" 400 11 0`,
			"2016-04-15T20:17:00.31Z read status=400 bytes=11 service=0 class=bad-request",
		}, {
			"the client went: status 0",
			`envoy:` + usual + `%DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%`,
			`[2016-04-15T20:17:00.310Z] "GET /a HTTP/1.1" 0 0 7 -`,
			"2016-04-15T20:17:00.317Z read owner=a status=0 bytes=0 service=7000",
		},
	})
}

// What is no format string is refused, and the error says where.
func TestFormatStringsThatAreNone(t *testing.T) {
	for format, says := range map[string]string{
		"nginx:":                         "no field in it",
		"nginx:$ x":                      "is no variable",
		"nginx:${time":                   "is no variable",
		"nginx:$time_local$request":      "nothing between field time_local and field request",
		"nginx:$request":                 "nothing fills the column time",
		"nginx:$time_local $status":      "nothing fills any of request",
		"nginx:escape=what $request":     "expected default, json or none",
		"nginx:log_format a '$request":   "is not closed",
		"nginx:log_format a $request;":   "expected a string in quotes",
		`nginx:"$request $time_iso8601`:  "the quote of field request is not closed",
		"apache:%":                       "is no directive",
		"apache:%{x":                     "is no directive",
		"apache:%é %t %r":                "is no directive",
		"apache:%{%Q}t %r":               "%Q in the time",
		"apache:%{%}t %r":                "ends with a percent sign",
		"apache:LogFormat %t":            "expected a string in quotes",
		"haproxy:%ci %[x":                "is no tag",
		"haproxy:%ci %{+Q":               "is no tag",
		"haproxy:%(n":                    "is no tag",
		"haproxy:%ci %B":                 "nothing fills the column time",
		"envoy:%START_TIME":              "is not closed",
		"envoy:%START_TIME% %%x%":        "is not closed",
		"envoy:%ST RT%":                  "is no command",
		"envoy:%START_TIME(%Q)%":         "%Q in the time",
		"text:{time} {request":           "is not closed",
		"text:{}":                        "without a name",
		"text:{time}{request}":           "nothing between",
		`text:{time} "{request} {bytes}`: "the quote of field request is not closed",
		"text:{request} {bytes}":         "nothing fills the column time",
		"text:{time} {bytes}":            "nothing fills any of request",
		"what":                           "expected alb, apache,",
		"what:x":                         "expected alb, apache,",
		"/there/is/no/such/file.yaml":    "no such file",
	} {
		_, _, err := Open(ChoiceOptions{Name: format}, Options{Key: []byte("k")})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %s", format, err, says)
		}
	}
}
