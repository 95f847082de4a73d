package services

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

const (
	// maxBody is the greatest length of a request's or an answer's body, in bytes.
	maxBody = 64 << 10
	// patience is how long a callee may take.
	patience = 15 * time.Second
	// jitter is the standard deviation of the logarithm of the time that work takes.
	jitter = 0.2
)

// Options of a service.
type Options struct {
	Component string
	// Site is where it runs, as the sites are named to Penstock.
	Site string
	// Entry is the URL of the internal listener of the site's entry point.
	Entry string
	// Seed draws how long work takes.
	Seed   uint64
	Clock  clock.Clock // defaults to the machine's
	Logger zerolog.Logger
}

// Service is a component at a site. It is safe for concurrent use.
type Service struct {
	o         Options
	component Component
	client    *http.Client
	added     atomic.Int64 // ns, to the work of each request
	calls     atomic.Int64
	probes    atomic.Int64

	mu  sync.Mutex
	rng *rand.Rand
}

// New returns a service. ErrComponent.
func New(o Options) (*Service, error) {
	c, ok := Find(o.Component)
	if !ok {
		return nil, fmt.Errorf("%q: %w", o.Component, ErrComponent)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return &Service{
		o: o, component: c, rng: rand.New(rand.NewPCG(o.Seed, 0)),
		// Idle connections are given up before an entry point would: else a call might
		// meet the end of its connection on the way.
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: 20 * time.Second}},
	}, nil
}

// Close lets idle connections go.
func (s *Service) Close() { s.client.CloseIdleConnections() }

// Answer is the body of an answer.
type Answer struct {
	// By are the replicas that took part, in the order in which they were asked.
	By []Replica `json:"by"`
}

// Replica is a component at a site.
type Replica struct {
	Component string `json:"component"`
	Site      string `json:"site"`
}

// Handler answers requests: /KIND is carried out, /health is answered with 200.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/{kind}", s.serve)
	return mux
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	begin := s.o.Clock.Now()
	s.calls.Add(1)
	if r.Header.Get("Penstock-Probe") != "" {
		s.probes.Add(1)
	}
	kind := r.PathValue("kind")
	if !known(kind) {
		s.answer(w, begin, 0, http.StatusNotFound, map[string]string{"error": fmt.Sprintf("no requests of kind %.40q", kind)})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.answer(w, begin, 0, http.StatusBadRequest, map[string]string{"error": "the body can't be read"})
		return
	}
	if err := s.o.Clock.Sleep(r.Context(), s.work()); err != nil {
		return // The caller has gone.
	}
	asked := s.o.Clock.Now()
	out := Answer{By: []Replica{{s.component.Name, s.o.Site}}}
	for _, to := range s.component.Calls[kind] {
		by, err := s.call(r, to, body)
		if err != nil {
			s.o.Logger.Warn().Err(err).Str("to", to).Msg("a call failed")
			s.answer(w, begin, s.o.Clock.Now().Sub(asked), http.StatusBadGateway, map[string]string{"error": err.Error()})
			return
		}
		out.By = append(out.By, by...)
	}
	s.answer(w, begin, s.o.Clock.Now().Sub(asked), http.StatusOK, out)
}

// work is how long the next request takes here: log-normal, with the component's
// mean, and what was added.
func (s *Service) work() time.Duration {
	s.mu.Lock()
	x := s.rng.NormFloat64()
	s.mu.Unlock()
	factor := math.Exp(jitter*x - jitter*jitter/2)
	return time.Duration(factor*float64(s.component.Work)) + time.Duration(s.added.Load())
}

// passedOn are the headers that belong to a request all the way.
var passedOn = []string{"Traceparent", "Tracestate", "Penstock-Probe"}

// call asks another component for its part of a request.
func (s *Service) call(r *http.Request, to string, body []byte) ([]Replica, error) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, s.o.Entry+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, name := range passedOn {
		if v := r.Header.Values(name); len(v) > 0 {
			out.Header[name] = v
		}
	}
	out.Header.Set("Penstock-Component", s.component.Name)
	out.Header.Set("Penstock-To", to)
	resp, err := s.client.Do(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", to, ErrCallee, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", to, ErrCallee, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %w: %d %.200s", to, ErrCallee, resp.StatusCode, bytes.TrimSpace(b))
	}
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", to, ErrCallee, err)
	}
	return a.By, nil
}

// answer answers a request that waited for others for a time.
func (s *Service) answer(w http.ResponseWriter, begin time.Time, others time.Duration, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		s.o.Logger.Error().Err(err).Msg("an answer can't be encoded")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	total := s.o.Clock.Now().Sub(begin)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("Server-Timing", fmt.Sprintf("app;dur=%.3f, total;dur=%.3f", ms(total-others), ms(total)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // The client may have gone; what was done stays done.
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// State is how a service is, and what it has done so far.
type State struct {
	AddedMS float64 `json:"added_ms"` // to the work of each request
	Calls   int64   `json:"calls"`    // probes included
	Probes  int64   `json:"probes"`
}

// maxAdded bounds what can be added.
const maxAdded = time.Minute

// Control is what operates the service: GET /state tells its State, PUT
// /added?dur=300ms makes each request from now on slower by so much.
func (s *Service) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { s.tell(w) })
	mux.HandleFunc("PUT /added", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.URL.Query().Get("dur"))
		if err != nil || d < 0 || d > maxAdded {
			http.Error(w, "expected dur=0s to 1m", http.StatusBadRequest)
			return
		}
		s.added.Store(int64(d))
		s.o.Logger.Info().Dur("added", d).Msg("work takes longer from now on")
		s.tell(w)
	})
	return mux
}

func (s *Service) tell(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	// The client may have gone; its business.
	_ = json.NewEncoder(w).Encode(State{AddedMS: ms(time.Duration(s.added.Load())), Calls: s.calls.Load(), Probes: s.probes.Load()})
}

// Slow makes the service whose control listens at an address slower, by d for each
// request from now on; 0 ends that.
func Slow(ctx context.Context, control string, d time.Duration) error {
	_, err := operate(ctx, http.MethodPut, control, "/added?dur="+d.String())
	return err
}

// StateOf asks the service whose control listens at an address how it is.
func StateOf(ctx context.Context, control string) (State, error) {
	return operate(ctx, http.MethodGet, control, "/state")
}

func operate(ctx context.Context, method, control, path string) (s State, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+control+path, http.NoBody)
	if err != nil {
		return s, err
	}
	resp, err := once.Do(r)
	if err != nil {
		return s, fmt.Errorf("control of a service: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("control of a service: it answers %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("control of a service: %w", err)
	}
	return s, nil
}

// once is a client that keeps no connection.
var once = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
