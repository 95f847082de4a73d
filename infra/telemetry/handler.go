package telemetry

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"penstock/infra/address"
)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.opts.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            quiet(s.opts.Logger),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             requestTimeout,
	}))
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	return s.guard(mux)
}

// guard lets in who may ask. Bodies have no use here and are not read.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.opts.Token != "":
			if !s.allowed(r) {
				w.Header().Set("WWW-Authenticate", `Bearer realm="penstock"`)
				http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
				return
			}
		case !address.IsLoopback(address.Host(r.Host)):
			// A page that a browser on this machine has open may name any host that
			// resolves to loopback; it has no business here.
			http.Error(w, "this server answers to loopback names only", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		next.ServeHTTP(w, r)
	})
}

// allowed compares digests, so that the time taken tells nothing of the token.
func (s *Server) allowed(r *http.Request) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(s.opts.Token))
	return ok && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	faults := s.opts.Readiness.Faults(ctx)
	answer(w, len(faults) == 0, struct {
		Healthy bool    `json:"healthy"`
		Faults  []Fault `json:"faults"`
		Build   Build   `json:"build"`
	}{len(faults) == 0, faults, ReadBuild()})
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	not, parts := s.opts.Readiness.NotReady()
	ready := parts > 0 && len(not) == 0
	answer(w, ready, struct {
		Ready    bool       `json:"ready"`
		Parts    int        `json:"parts"`
		NotReady []NotReady `json:"not_ready"`
	}{ready, parts, not})
}

func answer(w http.ResponseWriter, ok bool, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// An asker that went away is no failure of ours.
	_ = json.NewEncoder(w).Encode(v)
}

// quiet hands what a library logs to ours.
func quiet(l zerolog.Logger) *log.Logger {
	l = l.With().Str("part", "telemetry").Logger()
	return log.New(writer{l}, "", 0)
}

type writer struct{ log zerolog.Logger }

func (w writer) Write(p []byte) (int, error) {
	w.log.Warn().Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
