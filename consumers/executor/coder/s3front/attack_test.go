package s3front

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSignatures: what is wrong with a signature, by S3's code; nothing is stored.
func TestSignatures(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	good := put("/"+b+"/k", "data")
	text := good.signed(t, w.front.Addr())
	forged := func(name, from, to string, status int, code string) {
		t.Helper()
		changed := strings.Replace(string(text), from, to, 1)
		if changed == string(text) {
			t.Fatalf("%s: no %q in the request", name, from)
		}
		c, in := w.dial()
		if _, err := io.WriteString(c, changed); err != nil {
			t.Fatal(err)
		}
		if got := answerOf(t, in, http.MethodPut); got.status != status || got.code != code {
			t.Errorf("%s: %d %s, expected %d %s\n%s", name, got.status, got.code, status, code, got.text)
		}
	}
	line := func(name string) string {
		_, after, _ := strings.Cut(string(text), "\r\n"+name+": ")
		v, _, _ := strings.Cut(after, "\r\n")
		return v
	}
	authorization := line("Authorization")
	_, signature, _ := strings.Cut(authorization, "Signature=")
	forged("another path", "/k HTTP", "/l HTTP", 403, "SignatureDoesNotMatch")
	forged("another query", "/k HTTP", "/k?x=y HTTP", 403, "SignatureDoesNotMatch")
	forged("another signature", signature, strings.Repeat("0", 64), 403, "SignatureDoesNotMatch")
	forged("an empty signature", signature, "", 403, "SignatureDoesNotMatch")
	forged("another body", "\r\n\r\ndata", "\r\n\r\natad", 400, "XAmzContentSHA256Mismatch")
	forged("no digest", "X-Amz-Content-Sha256: ", "X-Nothing: ", 400, "InvalidRequest")
	forged("no authorization", "Authorization: ", "X-Nothing: ", 403, "AccessDenied")
	forged("another scheme", "AWS4-HMAC-SHA256 Cred", "Bearer Cred", 400, "InvalidArgument")
	forged("the scheme of old", authorization, "AWS writer:AAAA", 400, "InvalidRequest")
	forged("no credential", "Credential=", "Credentials=", 400, "AuthorizationHeaderMalformed")
	forged("half a credential", "/aws4_request", "", 400, "AuthorizationHeaderMalformed")
	forged("another region", "/"+region+"/", "/mars/", 400, "AuthorizationHeaderMalformed")
	forged("another service", "/s3/", "/iam/", 400, "AuthorizationHeaderMalformed")
	forged("no signed headers", "SignedHeaders=", "Nothing=", 400, "AuthorizationHeaderMalformed")
	forged("a header that is not signed", "Content-Length:", "X-Amz-Meta-A: b\r\nContent-Length:", 403, "AccessDenied")
	forged("no key of ours", "Credential="+access, "Credential=nobody", 403, "InvalidAccessKeyId")
	forged("an empty key", "Credential="+access, "Credential=", 403, "InvalidAccessKeyId")
	forged("a key of a session", "Credential="+access, "Credential=ASIAXXXX", 400, "InvalidToken")
	forged("no date", "X-Amz-Date: ", "X-Nothing: ", 403, "AccessDenied")

	for name, r := range map[string]wire{
		"long ago":     {at: time.Now().Add(-time.Hour)},
		"in an hour":   {at: time.Now().Add(time.Hour)},
		"another key":  {key: &Key{Access: access, Secret: "not its secret, is it"}},
		"may only get": {key: &Key{Access: readAccess, Secret: testKeys()[readAccess].Secret}},
	} {
		r.method, r.path, r.body = good.method, good.path, good.body
		code := map[string]string{"another key": "SignatureDoesNotMatch", "may only get": "AccessDenied"}[name]
		if code == "" {
			code = "RequestTimeTooSkewed"
		}
		w.expect(name, r, 403, code)
	}
	e.nothing(b)
	w.expect("the request itself", good, 200, "")
	w.expect("one who may get", wire{method: http.MethodGet, path: "/" + b + "/k", key: ref(testKeys()[readAccess])}, 200, "")
	w.expect("an owner", good.with("X-Amz-Expected-Bucket-Owner", "somebody"), 403, "AccessDenied")
}

// TestDigests: what is said of a body and isn't true stores nothing.
func TestDigests(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	r := put("/"+b+"/k", "data")
	unsigned := r
	unsigned.payload = "UNSIGNED-PAYLOAD"
	sha := r
	sha.payload = strings.Repeat("0", 64)
	chunked := func(payload, trailer, text string, length int) wire {
		c := wire{method: http.MethodPut, path: r.path, body: []byte(text), payload: payload, header: http.Header{
			"X-Amz-Decoded-Content-Length": {fmt.Sprint(length)}, "Content-Encoding": {"aws-chunked"},
		}}
		if trailer != "" {
			c.header["X-Amz-Trailer"] = []string{trailer}
		}
		return c
	}
	const trailing, crc = "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-checksum-crc32"
	for name, c := range map[string]struct {
		r      wire
		status int
		code   string
	}{
		"a digest":                   {sha, 400, "XAmzContentSHA256Mismatch"},
		"no digest":                  {func() wire { r := r; r.payload = "abc"; return r }(), 400, "InvalidArgument"},
		"md5":                        {unsigned.with("Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA=="), 400, "BadDigest"},
		"no md5":                     {unsigned.with("Content-Md5", "AAAA"), 400, "InvalidDigest"},
		"an empty md5":               {unsigned.with("Content-Md5", ""), 400, "InvalidDigest"},
		"crc32":                      {unsigned.with("X-Amz-Checksum-Crc32", "AAAAAA=="), 400, "BadDigest"},
		"crc32c":                     {unsigned.with("X-Amz-Checksum-Crc32c", "AAAAAA=="), 400, "BadDigest"},
		"crc64nvme":                  {unsigned.with("X-Amz-Checksum-Crc64nvme", "AAAAAAAAAAA="), 400, "BadDigest"},
		"sha1":                       {unsigned.with("X-Amz-Checksum-Sha1", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), 400, "BadDigest"},
		"sha256":                     {unsigned.with("X-Amz-Checksum-Sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), 400, "BadDigest"},
		"no crc32":                   {unsigned.with("X-Amz-Checksum-Crc32", "AAAA"), 400, "InvalidRequest"},
		"an algorithm":               {unsigned.with("X-Amz-Checksum-Xxhash64", "AAAAAAAAAAA="), 501, "NotImplemented"},
		"no algorithm":               {unsigned.with("X-Amz-Checksum-Crc1", "AAAA"), 501, "NotImplemented"},
		"two checksums":              {unsigned.with("X-Amz-Checksum-Crc32", "AAAAAA==").with("X-Amz-Checksum-Crc32c", "AAAAAA=="), 400, "InvalidRequest"},
		"an algorithm without a sum": {unsigned.with("X-Amz-Sdk-Checksum-Algorithm", "CRC32"), 400, "InvalidRequest"},
		"a sum of another algorithm": {unsigned.with("X-Amz-Checksum-Crc32", "AAAAAA==").with("X-Amz-Sdk-Checksum-Algorithm", "SHA1"), 400, "InvalidRequest"},
		"a trailer without chunks":   {unsigned.with("X-Amz-Trailer", crc), 400, "MalformedTrailerError"},

		"trailing crc32":              {chunked(trailing, crc, "4\r\ndata\r\n0\r\n"+crc+":AAAAAA==\r\n\r\n", 4), 400, "BadDigest"},
		"no trailing crc32":           {chunked(trailing, crc, "4\r\ndata\r\n0\r\n"+crc+":AAAA\r\n\r\n", 4), 400, "InvalidRequest"},
		"another trailer":             {chunked(trailing, crc, "4\r\ndata\r\n0\r\nx-amz-checksum-sha1:AAAAAA==\r\n\r\n", 4), 400, "MalformedTrailerError"},
		"no trailer":                  {chunked(trailing, crc, "4\r\ndata\r\n0\r\n\r\n", 4), 400, "MalformedTrailerError"},
		"a trailer of no sum":         {chunked(trailing, "x-other", "4\r\ndata\r\n0\r\n\r\n", 4), 400, "InvalidRequest"},
		"more than was said":          {chunked(trailing, "", "4\r\ndata\r\n0\r\n\r\n", 3), 400, "IncompleteBody"},
		"less than was said":          {chunked(trailing, "", "4\r\ndata\r\n0\r\n\r\n", 5), 400, "IncompleteBody"},
		"a size below nothing":        {chunked(trailing, "", "-4\r\ndata\r\n0\r\n\r\n", 4), 400, "IncompleteBody"},
		"no length":                   {chunked(trailing, "", "4\r\ndata\r\n0\r\n\r\n", -1), 411, "MissingContentLength"},
		"too long":                    {chunked(trailing, "", "4\r\ndata\r\n0\r\n\r\n", 6<<30), 400, "EntityTooLarge"},
		"cut off":                     {chunked(trailing, "", "4\r\ndata\r\n", 4), 400, "IncompleteBody"},
		"small chunks":                {chunked(trailing, "", "2\r\nda\r\n2\r\nta\r\n0\r\n\r\n", 4), 400, "InvalidChunkSizeError"},
		"data behind the end":         {chunked(trailing, "", "4\r\ndata\r\n0\r\n\r\nmore", 4), 400, "IncompleteBody"},
		"a forged chunk":              {chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "", "4;chunk-signature="+repeat("0", 64)+"\r\ndata\r\n0;chunk-signature="+repeat("0", 64)+"\r\n\r\n", 4), 403, "SignatureDoesNotMatch"},
		"a signed size below nothing": {chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "", "-5;chunk-signature="+repeat("0", 64)+"\r\ndata\r\n", 4), 400, "IncompleteBody"},
		"a cut before the last chunk": {chunked("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "", "4;chunk-signature="+repeat("0", 64)+"\r\ndata\r\n", 4), 403, "SignatureDoesNotMatch"},
		"signed by curves":            {chunked("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "", "0\r\n\r\n", 4), 501, "NotImplemented"},
		"too much metadata":           {r.with("X-Amz-Meta-A", repeat("x", 3000)), 400, "MetadataTooLarge"},
	} {
		w.expect(name, c.r, c.status, c.code)
	}
	e.nothing(b)
	sum := crc32.ChecksumIEEE([]byte("data"))
	value := base64Of(byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	got := w.expect("what is true", chunked(trailing, crc, "4\r\ndata\r\n0\r\n"+crc+":"+value+"\r\n\r\n", 4), 200, "")
	if got.header.Get("X-Amz-Checksum-Crc32") != value {
		t.Errorf("%v", got.header)
	}
	// aws-chunked is how it was sent, not what it is.
	if got := w.expect("get", wire{method: http.MethodGet, path: r.path}, 200, ""); got.text != "data" || got.header.Get("Content-Encoding") != "" {
		t.Errorf("%q, %v", got.text, got.header)
	}
}

// TestKeys: a key is a name of up to 1,024 bytes of UTF-8, whatever a path would make of
// it.
func TestKeys(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	n := 0
	for _, path := range []string{
		"..", "../x", "../../etc/passwd", "a/../b", "a/./b", ".", "./", "/", "//", "/x", "//x", "a//b", "a/", "%2e%2e/x", "%2E",
		"%5c..%5c", "a%25b", "%252e", "a+b", "a%20b", "a%3fb", "a%23b", "%C3%BC", "%E2%80%AE", "%EF%BF%BE", "%0d%0a", "~", "*", ":x", ":bucket/*",
		repeat("k", 1024), repeat("%C3%BC", 512),
	} {
		r := put("/"+b+"/"+path, path)
		got := w.expect(path, r, 200, "")
		if got.status != 200 {
			continue
		}
		n++
		if got := w.expect("get "+path, wire{method: http.MethodGet, path: r.path}, 200, ""); got.text != path {
			t.Errorf("%s: %q", path, got.text)
		}
		copied := put("/"+b+"/copied", "").with("X-Amz-Copy-Source", b+"/"+strings.ReplaceAll(path, "+", "%2B"))
		w.expect("copy "+path, copied, 200, "")
		if got := w.expect("get the copy of "+path, wire{method: http.MethodGet, path: copied.path}, 200, ""); got.text != path {
			t.Errorf("copy of %s: %q", path, got.text)
		}
	}
	if all := w.send(wire{method: http.MethodGet, path: "/" + b + "?list-type=2"}); strings.Count(all.text, "<Contents>") != n+1-2 { // two names twice
		t.Errorf("%d of %d names: %s", strings.Count(all.text, "<Contents>"), n, all.text)
	}
	for path, code := range map[string]string{
		"/" + b + "/" + repeat("k", 1025):     "KeyTooLongError",
		"/" + b + "/" + repeat("%C3%BC", 513): "KeyTooLongError",
		"/" + b + "/%ff":                      "InvalidURI",
		"/" + b + "/%00":                      "InvalidURI",
		"/" + b + "/a%00b":                    "InvalidURI",
		"/" + b + "/%c0%ae":                   "InvalidURI",
		"/" + b + "/%ed%a0%80":                "InvalidURI",
		"//" + b + "/k":                       "InvalidBucketName",
		"/../" + b + "/k":                     "InvalidBucketName",
		"/%2e%2e/k":                           "InvalidBucketName",
		"/A/k":                                "InvalidBucketName",
		"/ab/k":                               "InvalidBucketName",
		"/1.2.3.4/k":                          "InvalidBucketName",
		"/a_b/k":                              "InvalidBucketName",
		"/" + repeat("a", 64) + "/k":          "InvalidBucketName",
		"/other-bucket/k":                     "NoSuchBucket",
		"/" + b + "%2f..%2fk":                 "-",
	} {
		want, status := code, 400
		switch code {
		case "NoSuchBucket":
			status = 404
		case "-": // an escaped slash is one, and no path is resolved
			want, status = "", 200
		}
		w.expect(path, put(path, "x"), status, want)
	}
	for _, c := range []struct{ source, code string }{
		{"", ""},
		{"nokey", "InvalidArgument"},
		{b, "InvalidArgument"},
		{b + "/%ff", "InvalidArgument"},
		{b + "/%zz", "InvalidArgument"},
		{"A/k", "InvalidArgument"},
		{b + "/none", "NoSuchKey"},
		{"none/k", "NoSuchBucket"},
		{b + "/a?versionId=1", "NotImplemented"},
	} {
		if c.source == "" {
			continue
		}
		got := w.send(put("/"+b+"/to", "").with("X-Amz-Copy-Source", c.source))
		if got.code != c.code {
			t.Errorf("copy of %s: %d %s, expected %s", c.source, got.status, got.code, c.code)
		}
	}
	for name, text := range map[string]string{
		"no path":          "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
		"an absolute form": "GET http://x/" + b + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"no escape":        "GET /" + b + "/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"no request":       "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
		"two lengths":      "PUT /" + b + "/k HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a length and not": "PUT /" + b + "/k HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\nab",
		"an old line end":  "PUT /" + b + "/k HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n",
	} {
		c, in := w.dial()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if got := answerOf(t, in, http.MethodGet); got.status != 400 && got.status != 403 {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
}

// TestHeaders: too many are refused, in S3's way or, beyond what is read, in HTTP's.
func TestHeaders(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	w.expect("much", put("/"+b+"/k", "x").with("X-Much", repeat("x", maxHeader)), 400, "RequestHeaderSectionTooLarge")
	c, in := w.dial()
	go func() { // it may be cut off while it writes
		_, _ = io.WriteString(c, "PUT /"+b+"/k HTTP/1.1\r\nHost: x\r\nX-Much: "+repeat("x", 1<<20)+"\r\n\r\n")
	}()
	if got := answerOf(t, in, http.MethodPut); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("more: %d", got.status)
	}
	w.expect("a document", func() wire {
		r := wire{method: http.MethodPost, path: "/" + b + "?delete=", body: []byte("x")}
		r.length = ref(int64(maxBody + 1))
		return r
	}(), 400, "MaxMessageLengthExceeded")
	e.nothing(b)
}

// TestRefusedBody: what comes behind a refused request's headers is its body, and never
// the next request.
func TestRefusedBody(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, nil)
	b := w.bucket("a-bucket")
	smuggled := put("/"+b+"/smuggled", "x").signed(t, w.front.Addr())
	for name, refused := range map[string]wire{
		"no bucket":       put("/none-such/k", ""),
		"no key of ours":  {method: http.MethodPut, path: "/" + b + "/k", key: &Key{Access: "nobody", Secret: "nothing"}},
		"not implemented": put("/"+b+"/k?acl=", ""),
		"a digest":        {method: http.MethodPut, path: "/" + b + "/k", payload: repeat("0", 64)},
		"cut chunks":      {method: http.MethodPut, path: "/" + b + "/k", payload: "STREAMING-UNSIGNED-PAYLOAD-TRAILER", header: http.Header{"X-Amz-Decoded-Content-Length": {"4"}}},
		"a get with body": {method: http.MethodGet, path: "/none-such/k"},
		"a key too long":  put("/"+b+"/"+repeat("k", 2000), ""),
		"a large one":     put("/none-such/large", repeat("y", 1<<20)),
	} {
		if name == "cut chunks" {
			refused.body = append([]byte("0\r\n\r\n"), smuggled...)
		} else {
			refused.body = append(refused.body, smuggled...)
		}
		c, in := w.dial()
		go func() { // it may be cut off while it writes
			_, _ = c.Write(refused.signed(t, w.front.Addr()))
			_, _ = c.Write(wire{method: http.MethodGet, path: "/" + b}.signed(t, w.front.Addr()))
		}()
		if got := answerOf(t, in, refused.method); got.status < 400 {
			t.Errorf("%s: %d", name, got.status)
		}
		res, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
		if err != nil {
			continue // closed: good
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !bytes.Contains(text, []byte("ListBucketResult")) {
			t.Errorf("%s: the next answer is %d %s, %v", name, res.StatusCode, text, err)
		}
	}
	e.nothing(b)
}

// TestSlowClients: who sends or reads nothing is cut off, and leaves nothing.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, func(o *Options) { o.Idle = 300 * time.Millisecond })
	b := w.bucket("a-bucket")
	r := put("/"+b+"/k", "data")
	r.payload, r.length = "UNSIGNED-PAYLOAD", ref(int64(1<<20))
	c, in := w.dial()
	if _, err := c.Write(r.signed(t, w.front.Addr())); err != nil {
		t.Fatal(err)
	}
	if got := answerOf(t, in, r.method); got.status != 400 || got.code != "RequestTimeout" {
		t.Errorf("a body that stops: %d %s", got.status, got.code)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection stays")
	}
	// Some bytes now and then, 2 KB a second, are too little as well.
	c, in = w.dial()
	text := r.signed(t, w.front.Addr())
	if _, err := c.Write(text); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range 100 {
			if _, err := c.Write(make([]byte, 100)); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond) // the client's pace is what is tried
		}
	}()
	if got := answerOf(t, in, r.method); got.status != 400 || got.code != "RequestTimeout" {
		t.Errorf("a body that drips: %d %s", got.status, got.code)
	}
	e.nothing(b)

	// A client that reads nothing.
	calm := serve(t, e, nil) // takes nobody for slow because the machine is
	if got := calm.send(put("/"+b+"/large", repeat("z", 32<<20))); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	before := len(w.await(1))
	c, _ = w.dial()
	if _, err := c.Write(wire{method: http.MethodGet, path: "/" + b + "/large"}.signed(t, w.front.Addr())); err != nil {
		t.Fatal(err)
	}
	seen := w.await(before + 1)
	if last := seen[len(seen)-1]; last.Operation != "GetObject" || last.Status != 0 || last.Code != tooSlow {
		t.Errorf("a client that reads nothing: %+v", last)
	}
}

// TestGone: a client that goes away in the middle leaves nothing, and its connection is
// free.
func TestGone(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	w := serve(t, e, func(o *Options) { o.Connections = 2 })
	b := w.bucket("a-bucket")
	for i, size := range []int{0, 100, 300 << 10, 3 << 20} {
		r := put("/"+b+"/k", repeat("x", size))
		r.payload, r.length = "UNSIGNED-PAYLOAD", ref(int64(10<<20))
		before := len(w.await(0))
		c, _ := w.dial()
		if _, err := c.Write(r.signed(t, w.front.Addr())); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		seen := w.await(before + 1)
		if last := seen[len(seen)-1]; last.Code != "IncompleteBody" {
			t.Errorf("%d: %+v", i, last)
		}
	}
	e.nothing(b)
	w.expect("another", put("/"+b+"/k", "data"), 200, "")
}
