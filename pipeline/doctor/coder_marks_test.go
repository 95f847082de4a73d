package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// storedAt is a configuration with one coder and a store of each address.
func storedAt(keys string, urls ...string) string {
	var stores []string
	for i, u := range urls {
		stores = append(stores, fmt.Sprintf("{name: s%d, url: %q}", i, u))
	}
	return fmt.Sprintf("%scoders:\n  - {name: objects, site: a, listen: \"127.0.0.1:9200\", keys_file: %q, layout: spread, n: %d, k: 1, stores: [%s]}\n", sites, keys, len(urls), strings.Join(stores, ", "))
}

// TestStoresWithoutTheirMark: a store that lacks its owner mark is told of while another
// has it, since the folder of a disk that is not mounted looks like that.
func TestStoresWithoutTheirMark(t *testing.T) {
	d := t.TempDir()
	keys := put(t, d, "keys", []byte("client a-secret-of-some-length\n"))
	folder := func(name string, marked bool) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(d, name, "objects"), 0o750); err != nil {
			t.Fatal(err)
		}
		if marked {
			put(t, filepath.Join(d, name, "objects"), "owner~", []byte("{}"))
		}
		return "dir:" + filepath.Join(d, name)
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.Method == http.MethodHead:
		case q.Method == http.MethodGet && q.URL.Path == "/marked/objects/owner!":
			w.Header().Set("ETag", `"1"`)
			http.ServeContent(w, q, "", time.Unix(1, 0), strings.NewReader("{}"))
		case q.Method == http.MethodGet && q.URL.Path == "/secret/objects/owner!":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer service.Close()
	t.Setenv("EAST_ACCESS_KEY_ID", "access")
	t.Setenv("EAST_SECRET_ACCESS_KEY", "secret")
	bucket := func(name string) string {
		return fmt.Sprintf("s3://%s?endpoint=%s&region=us-east-1&credentials=EAST", name, service.URL)
	}
	marked, bare, file := folder("marked", true), folder("bare", false), folder("file", false)
	if err := os.RemoveAll(filepath.Join(d, "file", "objects")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(d, "file"), "objects", nil) // in which nothing can be looked for
	for name, c := range map[string]struct {
		urls    []string
		lacking []int
	}{
		"all have it":             {[]string{marked, bucket("marked")}, nil},
		"none has it":             {[]string{bare, bucket("bare"), "dir:" + filepath.Join(d, "gone")}, nil},
		"a folder":                {[]string{marked, bare}, []int{1}},
		"a folder that is gone":   {[]string{"dir:" + filepath.Join(d, "gone"), marked}, []int{0}},
		"a bucket":                {[]string{marked, bucket("bare"), bucket("marked")}, []int{1}},
		"one that can't be told":  {[]string{marked, bucket("secret"), file}, nil},
		"two, by that of another": {[]string{bare, bucket("bare"), bucket("marked")}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(t.Context(), Options{Config: read(t, storedAt(keys, c.urls...)), Coders: true, Timeout: 20 * time.Second})
			var lacking []int
			for i := range c.urls {
				for _, f := range find(r, "stores", fmt.Sprintf("store s%d of coder objects", i)) {
					if strings.Contains(f.Text, "has no owner mark though others have: is its disk mounted") {
						lacking = append(lacking, i)
						want(t, r, f.Area, f.What, Look, fmt.Sprintf("if what it held is lost: penstock coder store-is-new s%d", i))
					}
				}
			}
			if fmt.Sprint(lacking) != fmt.Sprint(c.lacking) {
				t.Errorf("told of %v, expected %v:\n%s", lacking, c.lacking, printed(t, r))
			}
			if name == "one that can't be told" {
				want(t, r, "stores", "store s1 of coder objects", Look, "whether it has its owner mark can't be told")
			}
		})
	}
}
