package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"penstock/pipeline/demo/notes"
)

// habit is how a wanderer's caller finds the site to call.
type habit int

const (
	stuck   habit = iota // the first one for ever
	learner              // the one of some answer, taken over now and then
	asker                // what the redirector last said, asked now and then
	sent                 // each time through the redirector
	habits
)

// wanderer is a client.
type wanderer struct {
	w      *wanderers
	habit  habit
	rng    *rand.Rand
	client *http.Client
	gap    time.Duration
	known  map[string]hint
}

// hint is what a client believes of an owner.
type hint struct {
	site    string
	version uint64
}

func newWanderer(w *wanderers, n int, gap time.Duration) *wanderer {
	c := &wanderer{w: w, habit: habit(n) % habits, rng: rand.New(rand.NewPCG(7, uint64(n))), gap: gap, known: map[string]hint{}}
	for i, owner := range w.owners {
		c.known[owner] = hint{site: w.homes[i]}
	}
	c.client = &http.Client{
		Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 2, DisableCompression: true},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 5 {
				return fmt.Errorf("%d redirects", len(via))
			}
			if r.Response.Header.Get("Penstock-Hops") != "" { // An entry point's, not the redirector's.
				*r.Context().Value(redirects{}).(*int)++
			}
			return nil
		},
	}
	return c
}

// redirects is the key of the counter in a request's context.
type redirects struct{}

func (c *wanderer) run(ctx context.Context) {
	defer c.client.CloseIdleConnections()
	for due := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		if due = due.Add(c.gap); time.Since(due) > time.Second {
			due = time.Now()
		}
		// Those that move to and fro are asked for more often.
		i := c.rng.IntN(len(c.w.owners))
		if c.rng.IntN(2) == 0 {
			i -= i % 10
		}
		a := journey{owner: c.w.owners[i], write: c.rng.IntN(3) == 0, from: time.Now().UnixMicro()}
		if err := c.call(&a); err != nil {
			c.w.fault("%s (write %v): %v", a.owner, a.write, err)
			continue
		}
		a.to = time.Now().UnixMicro()
		c.w.mu.Lock()
		c.w.answers = append(c.w.answers, a)
		c.w.mu.Unlock()
	}
}

// base is the address that is called for an owner.
func (c *wanderer) base(owner string) (string, error) {
	if c.habit == sent {
		return "http://" + c.w.e.lookup + "/r/" + owner, nil
	}
	if c.habit == asker && c.rng.IntN(20) == 0 {
		var said struct {
			Site    string `json:"site"`
			Version uint64 `json:"version"`
		}
		r, err := http.NewRequestWithContext(c.w.e.t.Context(), http.MethodGet, "http://"+c.w.e.lookup+"/v1/locations/"+owner, nil)
		if err != nil {
			return "", err
		}
		if _, err := c.do(r, http.StatusOK, &said); err != nil {
			return "", err
		}
		c.known[owner] = hint{said.Site, said.Version}
	}
	return c.w.e.urls[c.known[owner].site], nil
}

// call reads or writes an owner's notes, and looks at what the answer says.
func (c *wanderer) call(a *journey) error {
	base, err := c.base(a.owner)
	if err != nil {
		return err
	}
	method, want, body := http.MethodGet, http.StatusOK, io.Reader(nil)
	id, kept := "", c.w.books.Kept(a.owner)
	if a.write {
		id = strconv.FormatUint(c.w.ids.Add(1), 10)
		b, err := json.Marshal(notes.Note{ID: id, By: "somebody", Text: "hello"})
		if err != nil {
			return err
		}
		method, want, body = http.MethodPost, http.StatusCreated, bytes.NewReader(b)
		c.w.books.Sent(a.owner, id)
	}
	ctx := context.WithValue(c.w.e.t.Context(), redirects{}, &a.redirects)
	r, err := http.NewRequestWithContext(ctx, method, base+"/u/"+a.owner+"/notes", body)
	if err != nil {
		return err
	}
	r.Header.Set("X-User", "somebody")
	var page notes.Page
	h, err := c.do(r, want, &page)
	if err != nil {
		return err
	}
	if a.write {
		c.w.books.Acknowledged(a.owner, id)
	} else if page.Count < kept {
		c.w.fault("%s had %d notes and shows %d at %s", a.owner, kept, page.Count, page.Site)
	}
	if a.hops, err = strconv.Atoi(h.Get("Penstock-Hops")); err != nil || h.Get("Penstock-Site") != page.Site {
		return fmt.Errorf("served by %s: %v", page.Site, h)
	}
	version, err := strconv.ParseUint(h.Get("Penstock-Version"), 10, 64)
	if err != nil {
		return fmt.Errorf("version: %v", h)
	}
	if c.habit != sent {
		a.behind = version - min(version, c.known[a.owner].version)
	}
	if c.habit == learner && c.rng.IntN(20) == 0 {
		c.known[a.owner] = hint{page.Site, version}
	}
	return nil
}

func (c *wanderer) do(r *http.Request, want int, answer any) (http.Header, error) {
	resp, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != want {
		return nil, fmt.Errorf("%s %s: %d %v %.300s", r.Method, r.URL, resp.StatusCode, resp.Header, b)
	}
	return resp.Header, json.Unmarshal(b, answer)
}
