package s3front

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/s3api/controllers"
	"github.com/versity/versitygw/s3api/middlewares"

	"penstock/infra/door"
)

// Front answers S3 requests. New makes one.
type Front struct {
	o       Options
	server  *door.Server
	ops     operations
	root    middlewares.RootUserConfig
	handle  fasthttp.RequestHandler
	scratch sync.Pool // of *scratch
}

// owner is whom everything belongs to, in answers that name somebody.
const owner = "penstock"

// New binds the address. It returns ErrOptions and ErrDoor, and why the address could
// not be bound.
func New(o Options) (*Front, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Front{o: o}
	// versitygw knows one account beside those of the keys. Nobody knows this one's names.
	f.root = middlewares.RootUserConfig{Access: unknown(), Secret: unknown()}
	iam := accounts{keys: o.Keys}
	f.ops = newOperations(controllers.New(&storage{coder: o.Coder, log: o.Logger}, iam, nil, nil, nil, false, true, "", 0))
	f.handle = f.router(iam)
	f.scratch.New = func() any { return newScratch() }
	server, err := door.Listen(door.ServerOptions{
		Connections: o.Connections, Handler: f, Listen: o.Listen, Logger: *o.Logger, Name: "S3 front",
		StopTimeout: o.Stop,
		Wrap:        func(l net.Listener) net.Listener { return wrap(l, &f.o) },
	})
	if err != nil {
		return nil, err
	}
	h := server.HTTP
	h.MaxHeaderBytes = maxRead - 4<<10 // net/http adds 4 KiB of its own
	h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout, h.IdleTimeout = headerTimeout, 0, 0, pauseTimeout
	h.ConnContext = withConn
	// One connection has one request at a time, which all limits here go by.
	h.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	f.server = server
	return f, nil
}

func unknown() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Addr is the address that was bound.
func (f *Front) Addr() string { return f.server.Addr() }

// Run serves until ctx ends, then lets running requests finish for Options.Stop, cuts
// the rest and returns nil; or it returns why the listener failed, or ErrServed.
func (f *Front) Run(ctx context.Context) error {
	if err := f.server.Begin(); err != nil {
		return errors.Join(ErrServed, err)
	}
	return f.server.Serve(ctx)
}

// Close frees the address of a front, at once. It may be called more than once.
func (f *Front) Close() { f.server.Close() }

// router returns versitygw's side of the front: what reads a request, and what answers.
func (f *Front) router(iam accounts) fasthttp.RequestHandler {
	app := fiber.New(fiber.Config{
		CaseSensitive: true, StrictRouting: true,
		// The coder keeps names for longer than a request lasts.
		Immutable: true, StreamRequestBody: true,
	})
	app.Use(func(c fiber.Ctx) error {
		c.Path(requestOf(c.RequestCtx()).path)
		return c.Next()
	})
	serve := func(c fiber.Ctx) error { return f.serve(c, iam) }
	for _, path := range []string{"/", "/:bucket", "/:bucket/*"} {
		app.All(path, serve)
	}
	return app.Handler()
}
