package otlp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"penstock/producers/otlp/span"
)

// TracesPath is where OTLP over HTTP posts spans.
const TracesPath = "/v1/traces"

const (
	typeProto = "application/x-protobuf"
	typeJSON  = "application/json"
)

// Handler serves OTLP over HTTP: POST of TracesPath. It is for those who have a
// server already; Run must run all the same.
func (r *Receiver) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+TracesPath, r.post)
	return mux
}

func (r *Receiver) post(w http.ResponseWriter, req *http.Request) {
	if !r.enter(w, req) {
		return
	}
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != typeProto && kind != typeJSON {
		r.m.requests.WithLabelValues("http", outcomeKind).Inc()
		w.Header().Set("Accept", typeProto+", "+typeJSON)
		http.Error(w, "expected "+typeProto+" or "+typeJSON, http.StatusUnsupportedMediaType)
		return
	}
	encoding := req.Header.Get("Content-Encoding")
	if encoding != "" && encoding != "identity" && encoding != "gzip" {
		r.m.requests.WithLabelValues("http", outcomeKind).Inc()
		w.Header().Set("Accept-Encoding", "gzip, identity")
		answer(w, kind, http.StatusUnsupportedMediaType, status.New(codes.InvalidArgument, "expected Content-Encoding gzip or none").Proto())
		return
	}
	protocol := "http-protobuf"
	if kind == typeJSON {
		protocol = "http-json"
	}
	t, err := r.take(req.Context(), func(d *decoder) error {
		// It is read once there is a decoder for it: what is in memory is bounded.
		body, err := r.body(w, req, encoding == "gzip")
		if err != nil {
			return err
		}
		if kind == typeJSON {
			return d.JSON(body)
		}
		return d.Proto(body)
	})
	outcome := outcomeOf(t, err)
	r.m.requests.WithLabelValues(protocol, outcome).Inc()
	switch outcome {
	case outcomeTaken, outcomePartial:
		answer(w, kind, http.StatusOK, response(t))
	case outcomeBusy, outcomeClosing:
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		answer(w, kind, http.StatusServiceUnavailable, unavailable(err).Proto())
	case outcomeLarge:
		answer(w, kind, http.StatusRequestEntityTooLarge, status.New(codes.ResourceExhausted, err.Error()).Proto())
	default:
		answer(w, kind, http.StatusBadRequest, status.New(codes.InvalidArgument, err.Error()).Proto())
	}
}

// body reads a request, unpacked, up to MaxBody. The error wraps errLarge or
// span.ErrMalformed.
func (r *Receiver) body(w http.ResponseWriter, req *http.Request, packed bool) ([]byte, error) {
	most := r.o.MaxBody
	var in io.Reader = http.MaxBytesReader(w, req.Body, most)
	if packed {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, tooLarge(fmt.Errorf("gzip: %w: %w", err, span.ErrMalformed), most)
		}
		in = z
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, tooLarge(fmt.Errorf("body: %w: %w", err, span.ErrMalformed), most)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%w: expected at most %d bytes", errLarge, most)
	}
	return b, nil
}

// tooLarge tells a body that is too large from one that is broken.
func tooLarge(err error, most int64) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return fmt.Errorf("%w: expected at most %d bytes", errLarge, most)
	}
	return err
}

// answer writes a message in the request's own format.
func answer(w http.ResponseWriter, kind string, code int, m proto.Message) {
	b, err := proto.Marshal(m)
	if kind == typeJSON {
		b, err = protojson.Marshal(m)
	}
	if err != nil { // cannot be: the message is ours
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	_, _ = w.Write(b) // who went away has no use for it
}
