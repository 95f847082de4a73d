package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"penstock/infra/bus"
	"penstock/producers/middleware"
)

// A service publishes its own requests. It needs the bus neither to start nor to
// serve.
func Example() {
	ctx := context.Background()
	folder, url, stop := startBus(ctx)
	defer stop()

	rec, err := middleware.Open(ctx, middleware.Options{
		URL: url, Entry: "shop-1", Component: "shop", Site: "us-east", SpoolDir: filepath.Join(folder, "spool"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /u/{owner}/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.PathValue("owner"))
	})
	shop := rec.HTTP(mux, middleware.Rules{Owner: middleware.PathValue("owner"), User: middleware.Header("X-User")})

	answer := httptest.NewRecorder()
	shop.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/u/anna/photo", nil))
	fmt.Println(answer.Code, answer.Body)
	if err := rec.Close(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("published:", rec.Stats().Sent)
	// Output:
	// 200 hello anna
	// published: 1
}

// startBus runs a bus, which is somewhere else in real life.
func startBus(ctx context.Context) (folder, url string, stop func()) {
	folder, err := os.MkdirTemp("", "penstock-example")
	if err != nil {
		panic(err)
	}
	b, err := bus.Open(ctx, bus.Options{Dir: filepath.Join(folder, "bus"), Listen: "127.0.0.1:0", Sync: bus.SyncInterval})
	if err != nil {
		panic(err)
	}
	if err := b.Init(ctx); err != nil {
		panic(err)
	}
	return folder, b.URL(), func() {
		_ = b.Close()
		_ = os.RemoveAll(folder)
	}
}
