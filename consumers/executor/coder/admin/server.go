package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder"
	"penstock/infra/clock"
	"penstock/infra/door"
)

// Options say whose server this is.
type Options struct {
	// Name is the coder's, Layout its layout.
	Name, Layout string
	// Coder is looked into. Needed.
	Coder *coder.Coder
	// Codes are what the coder chooses by. Needed.
	Codes Codes
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// Tokens, of which one must be sent, are needed off loopback.
	Tokens []string
	// Connections is the most that are open at a time. Defaults to 16.
	Connections int
	// Clock and Logger may be left out.
	Clock  clock.Clock
	Logger *zerolog.Logger
}

// Server answers operators. New makes one.
type Server struct {
	o      Options
	door   *door.Door
	server *door.Server
	mux    *http.ServeMux

	mu   sync.Mutex
	now  *Scrub // under way
	last *Scrub
}

// New binds the address. It returns ErrOptions, door.ErrToken, and why the address could
// not be bound.
func New(o Options) (*Server, error) {
	if o.Coder == nil || o.Codes == nil {
		return nil, fmt.Errorf("%w: a coder and its codes are needed", ErrOptions)
	}
	guard := door.Options{Tokens: o.Tokens}
	if err := guard.Check(o.Listen); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		nop := zerolog.Nop()
		o.Logger = &nop
	}
	s := &Server{o: o, door: door.New(guard), mux: http.NewServeMux()}
	s.mux.HandleFunc("GET /healthz", s.healthz)
	s.mux.HandleFunc("GET /v1/status", s.guarded(s.status))
	s.mux.HandleFunc("POST /v1/store-is-new", s.guarded(s.takeIn))
	s.mux.HandleFunc("POST /v1/scrub", s.guarded(s.scrub))
	server, err := door.Listen(door.ServerOptions{
		Connections: cmp.Or(o.Connections, 16), Handler: s.mux, Listen: o.Listen, Logger: *o.Logger, Name: "coder's admin server",
	})
	if err != nil {
		return nil, err
	}
	s.server = server
	return s, nil
}

// Addr is the address that was bound.
func (s *Server) Addr() string { return s.server.Addr() }

// Run serves until ctx ends, and returns nil; or it returns why the listener failed, or
// door.ErrClosed.
func (s *Server) Run(ctx context.Context) error {
	if err := s.server.Begin(); err != nil {
		return err
	}
	// A scrub ends with the server.
	s.server.HTTP.BaseContext = func(net.Listener) context.Context { return ctx }
	return s.server.Serve(ctx)
}

// Close frees the address, at once. It may be called more than once.
func (s *Server) Close() { s.server.Close() }

// guarded lets those in who may come in.
func (s *Server) guarded(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, refused := s.door.Enter(r); refused != 0 {
			word, text := door.Refusal(w.Header(), refused)
			s.refuse(w, r, refused, word, text)
			return
		}
		if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			s.refuse(w, r, http.StatusForbidden, "browser", "pages of browsers have no business here")
			return
		}
		h(w, r)
	}
}

// problem is the answer that says no.
type problem struct {
	Error string `json:"error"`
	Text  string `json:"text"`
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, word, text string) {
	s.reply(w, r, status, problem{Error: word, Text: text})
}

func (s *Server) reply(w http.ResponseWriter, r *http.Request, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // Nothing here has what JSON has not.
		s.o.Logger.Error().Err(err).Msg("an answer can't be written")
		status, b = http.StatusInternalServerError, []byte("{}")
	}
	door.Reply(w, r, status, append(b, '\n'))
}

// healthz tells whether the coder answers.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	if _, err := s.o.Coder.Stats(r.Context()); err != nil {
		s.refuse(w, r, http.StatusServiceUnavailable, "coder", err.Error())
		return
	}
	s.reply(w, r, http.StatusOK, struct {
		OK bool `json:"ok"`
	}{true})
}

// status tells what the coder is at.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	stats, err := s.o.Coder.Stats(r.Context())
	if err != nil {
		s.refuse(w, r, http.StatusServiceUnavailable, "coder", err.Error())
		return
	}
	out := Status{Coder: s.o.Name, Layout: s.o.Layout, Now: s.o.Clock.Now().UTC()}
	out.fill(&stats)
	out.choice(s.o.Codes)
	s.mu.Lock()
	if s.now != nil {
		running := *s.now
		running.Seconds = out.Now.Sub(running.Began).Seconds()
		out.Scrub = &running
	}
	out.LastScrub = s.last // not changed any more
	s.mu.Unlock()
	s.reply(w, r, http.StatusOK, out)
}

// Scrub has the coder scrubbed and keeps what came of it for those who ask for the
// status. It returns ErrScrubbing, or what coder.Scrub does.
func (s *Server) Scrub(ctx context.Context, o coder.ScrubOptions, tell func(Progress)) (coder.Report, error) {
	began := s.o.Clock.Now().UTC()
	s.mu.Lock()
	if s.now != nil {
		s.mu.Unlock()
		return coder.Report{}, ErrScrubbing
	}
	s.now = &Scrub{Began: began, Repair: o.Repair}
	s.mu.Unlock()
	report, err := s.o.Coder.Scrub(ctx, o, func(p coder.Progress) {
		s.mu.Lock()
		s.now.Progress = Progress(p)
		s.mu.Unlock()
		if tell != nil {
			tell(Progress(p))
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.now
	ended.Seconds, ended.Report = s.o.Clock.Now().Sub(began).Seconds(), &report
	if err != nil {
		ended.Error = err.Error()
	}
	s.now, s.last = nil, ended
	return report, err
}

// pace is how often a scrub's progress is told.
const pace = 200 * time.Millisecond
