package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"penstock/consumers/executor/coder"
)

// TakenIn is the answer to who says that what an absent store held is lost for good.
type TakenIn struct {
	Store string `json:"store"`
	// Versions is of how many versions chunks are written into it anew.
	Versions int64 `json:"versions"`
}

// takeIn says that an absent store is a new one.
func (s *Server) takeIn(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("store")
	n, err := s.o.Coder.TakeIn(r.Context(), name)
	switch {
	case errors.Is(err, coder.ErrNoStore):
		s.refuse(w, r, http.StatusNotFound, "store", err.Error())
	case errors.Is(err, coder.ErrNotAbsent):
		s.refuse(w, r, http.StatusConflict, "store", err.Error()+": it has its owner marker, or holds nothing that could be lost; there is nothing to say of it")
	case err != nil:
		s.o.Logger.Warn().Err(err).Str("store", name).Msg("a store could not be taken in")
		s.refuse(w, r, http.StatusServiceUnavailable, "store", err.Error())
	default:
		s.reply(w, r, http.StatusOK, TakenIn{Store: name, Versions: n})
	}
}

// TakeIn says that what an absent store held is lost for good. The error wraps ErrRefused if
// the coder says no.
func (c *Client) TakeIn(ctx context.Context, store string) (t TakenIn, err error) {
	res, err := c.do(ctx, http.MethodPost, "/v1/store-is-new?"+url.Values{"store": {store}}.Encode())
	if err != nil {
		return t, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&t); err != nil {
		return t, fmt.Errorf("store of a coder: %w", err)
	}
	return t, nil
}
