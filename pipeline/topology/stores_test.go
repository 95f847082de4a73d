package topology

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/lazy"
	"penstock/pipeline/config"
)

// TestStoresAreOpenedAtOnce: one that takes its time doesn't make the others wait.
func TestStoresAreOpenedAtOnce(t *testing.T) {
	away := errors.New("away")
	var all sync.WaitGroup
	all.Add(3)
	stores := Stores{}
	for _, site := range []string{"a", "b", "c"} {
		stores[site] = lazy.New(lazy.Options{Name: site, Open: func(context.Context) (objectstore.Store, error) {
			all.Done()
			all.Wait() // for ever, if they came one after another
			return nil, away
		}})
	}
	var said strings.Builder
	stores.ready(t.Context(), zerolog.New(zerolog.SyncWriter(&said)))
	for site := range stores {
		if !strings.Contains(said.String(), `"part":"store of `+site+`"`) {
			t.Errorf("nothing is said of %s: %s", site, said.String())
		}
	}
}

// TestStoresAreCounted: what a store does by itself is counted under its site.
func TestStoresAreCounted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	cfg := &config.Config{Sites: []config.Site{{Name: "east", Store: "s3://bucket/x?endpoint=" + server.URL + "&region=us-east-1"}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var once sync.Once
	counted := ""
	stores, err := countedStores(ctx, cfg, nil, zerolog.Nop(), func(site, what string, _ int64) {
		once.Do(func() { counted = site + " " + what; cancel() })
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stores.Close() }()
	if counted != "east retry" {
		t.Errorf("counted %q", counted)
	}
}
