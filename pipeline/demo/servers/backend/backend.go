package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"penstock/infra/clock"
)

// Classes of requests, and how many objects each has.
const (
	Static = "static" // a file
	Page   = "page"   // a program answers
	Files  = 40
	Pages  = 20
)

// jitter is the standard deviation of the logarithm of the time that work takes.
const jitter = 0.1

// kilo is a kilobyte.
const kilo = 1000

// ErrOptions is returned by New for options that make no server.
var ErrOptions = errors.New("these options make no server")

// Size is the size of an object's answer in bytes: files of 2 to 64 kB, pages of 2 to
// 32 kB, each as many times larger than the one before. 0 for one that there is not.
func Size(class string, number int) int {
	n, most := Files, 32.0
	if class == Page {
		n, most = Pages, 16
	}
	if number < 0 || number >= n || class != Page && class != Static {
		return 0
	}
	return int(2 * kilo * math.Pow(most, float64(number)/float64(n-1)))
}

// Work is how long an object takes on average, on a machine of slowness 1.
func Work(class string, number int) time.Duration {
	size := float64(Size(class, number)) / kilo
	if class == Page {
		return time.Duration((120 + 10*size) * float64(time.Millisecond))
	}
	return time.Duration((40 + 2*size) * float64(time.Millisecond))
}

// Options of a server.
type Options struct {
	Workers  int     // requests that are worked on at the same time
	Slowness float64 // of the machine; 1: as Work says
	Seed     uint64  // draws how long work takes
	Clock    clock.Clock
	// Most is called with the state each time that it has more at once than ever.
	Most func(State)
}

// Server is a web server. It is safe for concurrent use.
type Server struct {
	o       Options
	workers chan struct{}

	mu    sync.Mutex
	rng   *rand.Rand
	times float64
	state State
}

// State is how a server is, and what it has done so far.
type State struct {
	PID int `json:"pid"`
	// Times is how many times slower than its machine it is made.
	Times float64 `json:"times"`
	// InService is how many requests it has, Most how many it had at once, Waited how many
	// of them waited for a worker.
	InService int   `json:"in_service"`
	Most      int   `json:"most"`
	Waited    int64 `json:"waited"`
	Done      int64 `json:"done"`
	// Told says that it was told to end, Left what it had in service then.
	Told bool `json:"told"`
	Left int  `json:"left"`
}

// New returns a server. ErrOptions.
func New(o Options) (*Server, error) {
	if o.Workers < 1 || !(o.Slowness > 0) || o.Slowness > 1000 {
		return nil, fmt.Errorf("%d workers, slowness %g: expected at least 1, and more than 0 up to 1000: %w", o.Workers, o.Slowness, ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return &Server{
		o: o, workers: make(chan struct{}, o.Workers), rng: rand.New(rand.NewPCG(o.Seed, 0)), times: 1, state: State{PID: os.Getpid()},
	}, nil
}

// Handler answers requests: /CLASS/NUMBER is served, /health is answered with 200.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/{class}/{number}", s.serve)
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	class := r.PathValue("class")
	number, err := strconv.Atoi(r.PathValue("number"))
	size := Size(class, number)
	if err != nil || size == 0 {
		http.Error(w, "no such object", http.StatusNotFound)
		return
	}
	if s.work(r.Context(), Work(class, number)) != nil {
		return // The client has gone.
	}
	// What is in service ends where the answer begins: whoever has the answer may send the
	// next request at once.
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	_, _ = w.Write(filler[:size]) // The client may have gone.
}

// filler is what answers are made of.
var filler = make([]byte, 64*kilo+1)

// work is a request in service.
func (s *Server) work(ctx context.Context, takes time.Duration) error {
	s.enter()
	defer s.leave()
	select {
	case s.workers <- struct{}{}:
	default:
		s.mu.Lock()
		s.state.Waited++
		s.mu.Unlock()
		select {
		case s.workers <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-s.workers }()
	return s.o.Clock.Sleep(ctx, s.time(takes))
}

func (s *Server) enter() {
	s.mu.Lock()
	s.state.InService++
	more := s.state.InService > s.state.Most
	s.state.Most = max(s.state.Most, s.state.InService)
	now := s.state
	s.mu.Unlock()
	if more && s.o.Most != nil {
		s.o.Most(now)
	}
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.InService--
	s.state.Done++
}

// time is how long work takes here this time: log-normal around its mean.
func (s *Server) time(mean time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(math.Exp(jitter*s.rng.NormFloat64()-jitter*jitter/2) * s.o.Slowness * s.times * float64(mean))
}

// State is how the server is.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state
	now.Times = s.times
	return now
}

// End notes that the server was told to end now.
func (s *Server) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Told, s.state.Left = true, s.state.InService
}

// mostTimes is how many times slower a server can be made.
const mostTimes = 1000

// Control is what operates the server: GET /state tells its State, PUT /slower?times=10
// has each request from now on take so many times as long as its machine would.
func (s *Server) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { s.tell(w) })
	mux.HandleFunc("PUT /slower", func(w http.ResponseWriter, r *http.Request) {
		times, err := strconv.ParseFloat(r.URL.Query().Get("times"), 64)
		if err != nil || !(times > 0) || times > mostTimes {
			http.Error(w, "expected times above 0, up to 1000", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.times = times
		s.mu.Unlock()
		s.tell(w)
	})
	return mux
}

func (s *Server) tell(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.State()) // The client may have gone; its business.
}

// StateOf asks the server whose control listens at an address how it is.
func StateOf(ctx context.Context, control string) (State, error) {
	return operate(ctx, http.MethodGet, control, "/state")
}

// Slower makes the server whose control listens at an address take so many times as long
// as its machine would; 1 ends that.
func Slower(ctx context.Context, control string, times float64) error {
	_, err := operate(ctx, http.MethodPut, control, "/slower?times="+strconv.FormatFloat(times, 'g', -1, 64))
	return err
}

func operate(ctx context.Context, method, control, path string) (s State, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+control+path, http.NoBody)
	if err != nil {
		return s, err
	}
	resp, err := once.Do(r)
	if err != nil {
		return s, fmt.Errorf("control of a server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("control of a server: it answers %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("control of a server: %w", err)
	}
	return s, nil
}

// once is a client that keeps no connection.
var once = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
