package delayed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

// Options of a Server.
type Options struct {
	// Bucket is there from the beginning.
	Bucket string
	// Counted, if any, says which keys of readings count as Reads; others are Others.
	Counted func(key string) bool
	// Seed of delays.
	Seed uint64
	// Delays at the beginning.
	Delays control.CodingModel
	// Clock of the delays. Defaults to the machine's.
	Clock clock.Clock
}

// Server is the service, an http.Handler.
type Server struct {
	clock   clock.Clock
	counted func(key string) bool
	backend gofakes3.Backend
	inner   http.Handler
	delays  atomic.Pointer[control.CodingModel]
	count   counters

	mu     sync.Mutex
	random *rand.Rand
}

var _ http.Handler = (*Server)(nil)

// New makes a service with an empty bucket.
func New(o Options) (*Server, error) {
	s := &Server{clock: o.Clock, counted: o.Counted, backend: s3mem.New(), random: rand.New(rand.NewPCG(o.Seed, 0))}
	if s.clock == nil {
		s.clock = clock.System()
	}
	if err := s.backend.CreateBucket(o.Bucket); err != nil {
		return nil, fmt.Errorf("bucket %q: %w", o.Bucket, err)
	}
	s.inner = gofakes3.New(s.backend, gofakes3.WithTimeSkewLimit(0), gofakes3.WithoutVersioning()).Server()
	s.SetDelays(o.Delays)
	return s, nil
}

// SetDelays changes the delays of requests to come.
func (s *Server) SetDelays(m control.CodingModel) { s.delays.Store(&m) }

// Counts is what the service was asked for since it was made.
type Counts struct {
	// Reads gave content that is Counted, Writes took some; Others are all else.
	Reads, Writes, Others uint64
	// Gone went away before they were answered; those are counted above too.
	Gone uint64
	// BytesRead and BytesWritten are of requests that were carried out.
	BytesRead, BytesWritten uint64
	// Waiting are under way.
	Waiting int64
}

type counters struct {
	reads, writes, others, gone, read, written atomic.Uint64
	waiting                                    atomic.Int64
}

// Counts tells what it was asked for so far.
func (s *Server) Counts() Counts {
	c := &s.count
	return Counts{
		Reads: c.reads.Load(), Writes: c.writes.Load(), Others: c.others.Load(), Gone: c.gone.Load(),
		BytesRead: c.read.Load(), BytesWritten: c.written.Load(), Waiting: c.waiting.Load(),
	}
}

// maxBody is the most bytes of a body.
const maxBody = 64 << 20

// ServeHTTP answers a request, once its time has come.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.count.waiting.Add(1)
	defer s.count.waiting.Add(-1)
	// Only when the body has been read does Go's server see that a client goes away.
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= maxBody {
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = io.WriteString(w, "<Error><Code>EntityTooLarge</Code></Error>")
		} // Else the client is gone, and nobody reads an answer.
		return
	}
	r.Body = io.NopCloser(&body)
	size, took := s.take(r, int64(body.Len()))
	if err := s.clock.Sleep(r.Context(), took); err != nil {
		s.count.gone.Add(1)
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.count.read.Add(size)
	case http.MethodPut, http.MethodPost:
		s.count.written.Add(size)
	}
	s.inner.ServeHTTP(w, r)
}

// take counts a request, and says how many bytes it is about and how long it takes.
func (s *Server) take(r *http.Request, body int64) (size uint64, took time.Duration) {
	m := s.delays.Load()
	d := m.Write
	switch {
	case r.Method == http.MethodGet && keyOf(r) != "":
		if s.counted == nil || s.counted(keyOf(r)) {
			s.count.reads.Add(1)
		} else {
			s.count.others.Add(1)
		}
		d, body = m.Read, s.content(r)
	case r.Method == http.MethodPut && keyOf(r) != "":
		s.count.writes.Add(1)
		if n, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err == nil && n >= 0 && n < body {
			body = n
		}
	default:
		s.count.others.Add(1)
		body = 0
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			d = m.Read
		}
	}
	mb := float64(body) / 1e6
	s.mu.Lock()
	times := s.random.ExpFloat64()
	s.mu.Unlock()
	delay := d.Delta + float64(d.DeltaPerMB*mb) + float64((d.Psi+float64(d.PsiPerMB*mb))*times)
	return uint64(max(body, 0)), time.Duration(delay * float64(time.Millisecond))
}

// keyOf is the object that a request is about, if it is about one.
func keyOf(r *http.Request) string {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return key
}

// content is how many bytes a reading will give.
func (s *Server) content(r *http.Request) int64 {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	head, err := s.backend.HeadObject(bucket, key)
	if err != nil {
		return 0
	}
	defer head.Contents.Close()
	from, to := int64(0), head.Size-1
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		first, last, _ := strings.Cut(text, "-")
		if n, err := strconv.ParseInt(first, 10, 64); err == nil {
			from = n
		}
		if n, err := strconv.ParseInt(last, 10, 64); err == nil {
			to = min(to, n)
		}
	}
	return max(0, to-from+1)
}

// Run answers requests at a listener until the context ends, and closes it. Requests that
// wait then are cut off.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	// What gofakes3 can't write to clients that are gone is no fault, and all that is told.
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return fmt.Errorf("object store: %w", err)
	}
	return nil
}
