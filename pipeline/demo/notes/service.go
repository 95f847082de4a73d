package notes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/pipeline/demo/processes"
)

const (
	// maxNote is the greatest length of a request's body in bytes.
	maxNote = 16 << 10
	// maxLast is the most notes of one answer, defaultLast those where the request
	// doesn't say.
	maxLast, defaultLast = 1000, 10
)

// Options of a service.
type Options struct {
	// Site is where it runs, as the sites are named to Penstock.
	Site   string
	Store  Store
	Clock  clock.Clock // defaults to the machine's
	Logger zerolog.Logger
}

// Service answers requests about the notebooks of a site.
type Service struct{ o Options }

// New returns a service.
func New(o Options) *Service {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return &Service{o}
}

// Run serves on a listener until the context ends; running requests are finished.
// It closes the listener.
func (s *Service) Run(ctx context.Context, l net.Listener) error {
	return processes.Serve(ctx, l, s.Handler())
}

// Handler is the service without a server.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /u/{owner}/notes", s.read)
	mux.HandleFunc("POST /u/{owner}/notes", s.write)
	return mux
}

// Page is the answer to a read.
type Page struct {
	Owner string `json:"owner"`
	Site  string `json:"site"` // that served it
	Count int    `json:"count"`
	Notes []Note `json:"notes"` // the last ones
}

// Written is the answer to a write.
type Written struct {
	ID     string `json:"id"`
	Number uint64 `json:"number"` // in the notebook
	Site   string `json:"site"`
}

func (s *Service) read(w http.ResponseWriter, r *http.Request) {
	begin := s.o.Clock.Now()
	last := defaultLast
	if q := r.URL.Query().Get("last"); q != "" {
		n, err := strconv.Atoi(q)
		if err != nil || n < 0 || n > maxLast {
			s.refuse(w, begin, http.StatusBadRequest, fmt.Sprintf("last=%.20q, expected 0 to %d", q, maxLast))
			return
		}
		last = n
	}
	owner := r.PathValue("owner")
	list, count, err := Read(r.Context(), s.o.Store, owner, last)
	if err != nil {
		s.fail(w, begin, owner, err)
		return
	}
	s.answer(w, begin, http.StatusOK, Page{Owner: owner, Site: s.o.Site, Count: count, Notes: list})
}

func (s *Service) write(w http.ResponseWriter, r *http.Request) {
	begin := s.o.Clock.Now()
	var n Note
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxNote)).Decode(&n); err != nil || n.ID == "" {
		s.refuse(w, begin, http.StatusBadRequest, "expected a note: {id, by, text}")
		return
	}
	owner := r.PathValue("owner")
	number, err := Write(r.Context(), s.o.Store, owner, n)
	if err != nil {
		s.fail(w, begin, owner, err)
		return
	}
	s.answer(w, begin, http.StatusCreated, Written{ID: n.ID, Number: number, Site: s.o.Site})
}

// fail answers a request that the store did not carry out.
func (s *Service) fail(w http.ResponseWriter, begin time.Time, owner string, err error) {
	var marked *objectstore.MarkedError
	switch {
	case errors.As(err, &marked):
		// Data that is on its way comes here.
		site := s.o.Site
		if marked.Have.State == objectstore.Retired {
			site = marked.Have.Site
		}
		w.Header().Set("Penstock-Site", site)
		w.Header().Set("Penstock-Version", strconv.FormatUint(marked.Have.Version, 10))
		s.refuse(w, begin, http.StatusMisdirectedRequest, marked.Error())
	case errors.Is(err, objectstore.ErrNoOwner):
		s.refuse(w, begin, http.StatusNotFound, err.Error())
	case errors.Is(err, objectstore.ErrName):
		s.refuse(w, begin, http.StatusBadRequest, err.Error())
	default:
		s.o.Logger.Error().Err(err).Str("owner", owner).Msg("request failed")
		s.refuse(w, begin, http.StatusInternalServerError, "the store failed")
	}
}

func (s *Service) refuse(w http.ResponseWriter, begin time.Time, status int, why string) {
	s.answer(w, begin, status, map[string]string{"error": why})
}

func (s *Service) answer(w http.ResponseWriter, begin time.Time, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		s.o.Logger.Error().Err(err).Msg("an answer can't be encoded")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	took := s.o.Clock.Now().Sub(begin)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("Server-Timing", fmt.Sprintf("app;dur=%.3f", float64(took.Microseconds())/1000))
	w.WriteHeader(status)
	_, _ = w.Write(b) // The client may have gone; what was done stays done.
}
