package s3

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/s3/wire"
)

// TestOptions: what can't be used is refused before anything is sent.
func TestOptions(t *testing.T) {
	good := Options{Endpoint: "http://127.0.0.1:1", Bucket: "bucket", AccessKey: "a", SecretKey: "very-secret"}
	if _, err := good.complete(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no endpoint":       func(o *Options) { o.Endpoint = "" },
		"another scheme":    func(o *Options) { o.Endpoint = "ftp://host" },
		"secrets in it":     func(o *Options) { o.Endpoint = "http://me:very-secret@host" },
		"not a URL":         func(o *Options) { o.Endpoint = "http://host:very-secret" },
		"with a path":       func(o *Options) { o.Endpoint = "http://host/bucket" },
		"with a query":      func(o *Options) { o.Endpoint = "http://host?very-secret" },
		"a bare path":       func(o *Options) { o.Endpoint = "host/bucket" },
		"no bucket":         func(o *Options) { o.Bucket = "" },
		"half a key":        func(o *Options) { o.AccessKey = "" },
		"long prefix":       func(o *Options) { o.Prefix = strings.Repeat("p", wire.MaxPrefix+1) },
		"leading slash":     func(o *Options) { o.Prefix = "/a" },
		"trailing slash":    func(o *Options) { o.Prefix = "a/" },
		"dots":              func(o *Options) { o.Prefix = "a/../b" },
		"small parts":       func(o *Options) { o.PartSize = minPart - 1 },
		"negative attempts": func(o *Options) { o.Attempts = -1 },
	} {
		o := good
		change(&o)
		_, err := Open(t.Context(), o)
		if !errors.Is(err, ErrOption) || strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for endpoint, secure := range map[string]bool{"https://h:1": true, "http://h:1": false, "h:1": true} {
		o := good
		o.Endpoint, o.Secure = endpoint, true
		if host, err := o.complete(); err != nil || host != "h:1" || o.Secure != secure {
			t.Errorf("%s: %s, %v, %v", endpoint, host, o.Secure, err)
		}
	}
}

// TestNoSecrets: keys stand neither in errors nor in the log, whatever a service
// says of them.
func TestNoSecrets(t *testing.T) {
	base := options(t)
	for name, change := range map[string]func(*Options){
		"wrong secret key": func(o *Options) { o.SecretKey = "wrong-secret" },
		"wrong access key": func(o *Options) { o.AccessKey = "wrong-access" },
		"nobody there":     func(o *Options) { o.Endpoint, o.Attempts, o.Pause = "http://127.0.0.1:1", 2, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := base
			var log bytes.Buffer
			o.Logger = zerolog.New(&log)
			change(&o)
			_, err := Open(t.Context(), o)
			if err == nil {
				t.Fatal("the store opens")
			}
			for _, secret := range []string{o.AccessKey, o.SecretKey} {
				if strings.Contains(err.Error(), secret) || strings.Contains(log.String(), secret) {
					t.Errorf("a key is told: %v; %s", err, log.String())
				}
			}
			if len(err.Error()) < 30 {
				t.Errorf("the error says too little: %v", err)
			}
		})
	}
}

// TestStoresApart: stores in one bucket don't see each other's data.
func TestStoresApart(t *testing.T) {
	o := options(t)
	o.Prefix = "east"
	east := open(t, o)
	o.Prefix = "west"
	west := open(t, o)
	if _, err := east.Put(t.Context(), "o", "a", strings.NewReader("1"), objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	if m, err := west.Stat(t.Context(), "o"); err != nil || m.State != objectstore.Absent {
		t.Errorf("in the west it is %v, %v", m, err)
	}
	if got := owners(t, west); len(got) != 0 {
		t.Errorf("owners in the west: %q", got)
	}
	if got := owners(t, east); len(got) != 1 || got[0] != "o" {
		t.Errorf("owners in the east: %q", got)
	}
}
