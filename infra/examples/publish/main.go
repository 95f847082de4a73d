// Command publish is the example of a Go service that publishes its own requests
// with producers/middleware. Beside it stand publish.py and publish.mjs, which do
// it without anything of ours, by what docs/wire.md says.
//
//	publish -nats nats://127.0.0.1:4222 -spool /var/tmp/shop
//
// It serves until it is told to stop, whether the bus is there or not. Failures:
// it exits with status 1 if it cannot listen or open the spool.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"penstock/producers/middleware"
)

func main() {
	nats := flag.String("nats", "nats://127.0.0.1:4222", "address of the bus")
	listen := flag.String("listen", "127.0.0.1:0", "address to serve at")
	spool := flag.String("spool", "spool", "folder for what the bus does not have yet")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *nats, *listen, *spool); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, nats, listen, spool string) error {
	rec, err := middleware.Open(ctx, middleware.Options{
		URL: nats, Entry: "shop-1", Component: "shop", Site: "us-east", SpoolDir: spool,
		Logger: zerolog.New(os.Stderr),
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /u/{owner}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "the data of %s\n", r.PathValue("owner"))
	})
	server := &http.Server{
		Handler: rec.HTTP(mux, middleware.Rules{
			Owner: middleware.PathValue("owner"), User: middleware.Header("X-User"), Class: middleware.Pattern,
		}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return errors.Join(err, rec.Close(ctx))
	}
	fmt.Printf("http://%s\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	// First the last requests, then their rows.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(end), rec.Close(end))
}
