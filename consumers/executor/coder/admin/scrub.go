package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"penstock/consumers/executor/coder"
)

// query is how scrub options stand in a URL.
func query(o coder.ScrubOptions) url.Values {
	return url.Values{
		"repair": {strconv.FormatBool(o.Repair)}, "orphans": {strconv.FormatBool(o.Orphans)}, "rate": {strconv.FormatInt(o.Rate, 10)},
	}
}

// parseQuery reads what query writes; a name that is missing is false, or 0. It returns
// why it can't.
func parseQuery(v url.Values) (o coder.ScrubOptions, err error) {
	for name, values := range v {
		if len(values) != 1 {
			return o, fmt.Errorf("%q is there %d times", name, len(values))
		}
		switch value := values[0]; name {
		case "repair":
			o.Repair, err = strconv.ParseBool(value)
		case "orphans":
			o.Orphans, err = strconv.ParseBool(value)
		case "rate":
			o.Rate, err = strconv.ParseInt(value, 10, 64)
			if err == nil && o.Rate < 0 {
				err = errors.New("below 0")
			}
		default:
			return o, fmt.Errorf("%q is no option of a scrub", name)
		}
		if err != nil {
			return o, fmt.Errorf("%s: %w", name, err)
		}
	}
	return o, nil
}

// scrub scrubs and tells how far it is, a line now and then.
func (s *Server) scrub(w http.ResponseWriter, r *http.Request) {
	o, err := parseQuery(r.URL.Query())
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, "query", err.Error())
		return
	}
	out := &lines{s: s, w: w, control: http.NewResponseController(w)}
	// The deadlines of the server are for short answers: net/http would take the one for
	// reading, which is over, for a client that has gone.
	_ = out.control.SetReadDeadline(time.Time{})
	report, err := s.Scrub(r.Context(), o, func(p Progress) {
		if now := s.o.Clock.Now(); now.Sub(out.told) >= pace {
			out.told = now
			out.write(line{Progress: &p})
		}
	})
	switch {
	case errors.Is(err, ErrScrubbing):
		s.refuse(w, r, http.StatusConflict, "scrubbing", err.Error())
	case err != nil:
		s.o.Logger.Warn().Err(err).Msg("a scrub failed")
		out.write(line{Report: &report, Error: err.Error()})
	default:
		out.write(line{Report: &report})
	}
}

// lines writes an answer line by line, for as long as it takes.
type lines struct {
	s       *Server
	w       http.ResponseWriter
	control *http.ResponseController
	told    time.Time
	begun   bool
}

// lineTimeout is how long the client may take to read a line.
const lineTimeout = 10 * time.Second

// write writes a line. That nobody reads it ends the request's context, which ends the
// scrub: its errors are no matter.
func (l *lines) write(v line) {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	_ = l.control.SetWriteDeadline(l.s.o.Clock.Now().Add(lineTimeout))
	_ = json.NewEncoder(l.w).Encode(v)
	_ = l.control.Flush()
}
