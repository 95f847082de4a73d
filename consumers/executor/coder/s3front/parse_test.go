package s3front

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"penstock/consumers/executor/coder"
)

// TestParseKeys: what a keys file says, and what is wrong with it, by file and line.
func TestParseKeys(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 40)
	got, err := ParseKeys("keys", strings.NewReader("# ours\n\n  one "+secret+"  \ntwo\t"+secret+" read\n"))
	if err != nil || len(got) != 2 || got["one"] != (Key{Access: "one", Secret: secret}) || got["two"] != (Key{Access: "two", Secret: secret, ReadOnly: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                  "keys: no key in it",
		"# none\n":                          "keys: no key in it",
		"one\n":                             "keys:1: 1 words",
		"\none " + secret + " read more\n":  "keys:2: 4 words",
		"one " + secret + " write\n":        `keys:1: access key "one": third word is not read`,
		"one short\n":                       `keys:1: secret of access key "one" has less than 16 bytes`,
		"o/e " + secret + "\n":              "keys:1: access key is not",
		"ASIAONE " + secret + "\n":          `keys:1: access key "ASIAONE" is one of a session`,
		"one sécretsécretsécret\n":          `keys:1: secret of access key "one" has characters`,
		"one " + secret + "\none " + secret: `keys:2: access key "one" for the second time`,
		"one " + strings.Repeat("s", 600):   "keys:1: not a file of keys",
	} {
		_, err := ParseKeys("keys", strings.NewReader(text))
		if !errors.Is(err, ErrKeys) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%.40q: %v, expected %s", text, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "keys")
	if _, err := ReadKeys(file); !errors.Is(err, ErrKeys) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("one "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := ReadKeys(file); err != nil || len(keys) != 1 {
		t.Error(keys, err)
	}
}

// TestOptions: what makes no front.
func TestOptions(t *testing.T) {
	t.Parallel()
	e := memory(t, nil)
	for name, c := range map[string]struct {
		change func(*Options)
		want   error
	}{
		"no coder":              {func(o *Options) { o.Coder = nil }, ErrOptions},
		"no region":             {func(o *Options) { o.Region = "" }, ErrOptions},
		"no keys":               {func(o *Options) { o.Keys = nil }, ErrOptions},
		"a key that isn't one":  {func(o *Options) { o.Keys = Keys{"a": {Access: "a", Secret: "b"}} }, ErrOptions},
		"a key of another name": {func(o *Options) { o.Keys = Keys{"abc": testKeys()[access]} }, ErrOptions},
		"no port":               {func(o *Options) { o.Listen = "127.0.0.1" }, ErrOptions},
		"below nothing":         {func(o *Options) { o.Idle = -1 }, ErrOptions},
		"a rate below nothing":  {func(o *Options) { o.Rate = -1 }, ErrOptions},
		"off loopback":          {func(o *Options) { o.Listen = "0.0.0.0:0" }, ErrDoor},
		"everywhere":            {func(o *Options) { o.Listen = ":0" }, ErrDoor},
		"said so":               {func(o *Options) { o.Listen, o.Public = "0.0.0.0:0", true }, nil},
		"TLS":                   {func(o *Options) { o.Listen, o.TLS = "0.0.0.0:0", certificate(t) }, nil},
		"loopback":              {func(*Options) {}, nil},
	} {
		o := Options{Coder: e.Coder, Keys: testKeys(), Listen: "127.0.0.1:0", Region: region}
		c.change(&o)
		f, err := New(o)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if f != nil {
			f.Close()
			if err := f.Run(t.Context()); !errors.Is(err, ErrServed) {
				t.Errorf("%s: run: %v", name, err)
			}
			f.Close()
		}
	}
}

func TestParseRange(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]coder.Range{
		"bytes=0-":                     {Set: true, To: -1},
		"bytes=5-9":                    {Set: true, From: 5, To: 9},
		"bytes= 5-9 ":                  {Set: true, From: 5, To: 9},
		"bytes=-3":                     {Set: true, Last: 3},
		"bytes=-0":                     {Set: true, From: math.MaxInt64, To: -1},
		"bytes=99999999999999999999-":  {Set: true, From: math.MaxInt64, To: -1},
		"bytes=1-99999999999999999999": {Set: true, From: 1, To: math.MaxInt64},
		"":                             {},
		"bytes":                        {},
		"bytes=":                       {},
		"bytes=-":                      {},
		"bytes=5-4":                    {},
		"bytes=1-2,3-4":                {},
		"bytes=a-b":                    {},
		"bytes=+1-2":                   {},
		"bytes=--1":                    {},
		"octets=1-2":                   {},
	} {
		if got, ok := parseRange(field); got != want || ok != want.Set {
			t.Errorf("%q: %+v, %v", field, got, ok)
		}
	}
}

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"bytes=0-", "bytes=-5", "bytes=1-2", "bytes=99999999999999999999-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		r, ok := parseRange(field)
		if ok != r.Set || r.From < 0 || r.Last < 0 || ok && r.To >= 0 && r.Last == 0 && r.To < r.From || r.Part != 0 {
			t.Fatalf("%q: %+v, %v", field, r, ok)
		}
	})
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"/", "/b", "/bucket/k?x", "/bucket/%2e%2e/..", "//x", "/bucket/%ff", "/bucket/%00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		got, _, err := parseTarget(uri)
		if err != nil {
			return
		}
		if got.bucket == "" && got.key != "" || len(got.key) > maxKey || !utf8.ValidString(got.key) || strings.Contains(got.bucket, "/") {
			t.Fatalf("%q: %+v", uri, got)
		}
	})
}

func FuzzParseCopySource(f *testing.F) {
	for _, s := range []string{"bucket/k", "/bucket/k?versionId=null", "bucket%2Fk", "bucket/a+b", "bucket/%ff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got, err := parseCopySource(header)
		if err == nil && (got.bucket == "" || got.key == "" || len(got.key) > maxKey || !utf8.ValidString(got.key)) {
			t.Fatalf("%q: %+v", header, got)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add("# a\none 0123456789abcdef\ntwo 0123456789abcdef read\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys("keys", strings.NewReader(text))
		if err == nil && keys.check() != nil {
			t.Fatalf("%q: %+v", text, keys)
		}
	})
}

func TestDates(t *testing.T) {
	t.Parallel()
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	for text, ok := range map[string]bool{
		"Sun, 06 Nov 1994 08:49:37 GMT": true, "Sunday, 06-Nov-94 08:49:37 GMT": true, "Sun Nov  6 08:49:37 1994": true,
		"1994-11-06T08:49:37Z": true, "yesterday": false, "": false,
	} {
		if got := date(text); ok != got.Equal(want) || !ok && !got.IsZero() {
			t.Errorf("%q: %v", text, got)
		}
	}
}
