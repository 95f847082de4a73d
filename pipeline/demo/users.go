package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/ledger"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/notes"
)

// kind is what a request is told from others by.
type kind struct {
	at     Site // where the caller was
	served Site // where the data was
	way    Way
	crowd  bool // the caller belongs to the crowd
	hops   int
}

// users are the people as clients.
type users struct {
	world  *World
	clock  clock.Clock
	where  *whereabouts
	acts   *acts
	books  *ledger.Ledger
	seen   load.Samples[kind]
	faults faults

	clients    []*http.Client // by where they are
	entries    []string       // addresses, by site
	sites      map[string]Site
	redirector string

	mu     sync.Mutex
	looked map[[2]int]hint // by who asks and whose data it is
}

// hint is what the redirector said, and until when it is believed.
type hint struct {
	site  Site
	until time.Time
}

// patience is how long a client waits for an answer.
const patience = 20 * time.Second

func newUsers(w *World, c clock.Clock, a *acts, mesh *links.Mesh, at *addresses) *users {
	u := &users{
		world: w, clock: c, where: &whereabouts{}, acts: a, books: ledger.New(), entries: at.entries,
		sites: map[string]Site{}, redirector: at.redirector, looked: map[[2]int]hint{},
	}
	for i, r := range w.Regions {
		u.sites[r.Name] = Site(i)
		u.clients = append(u.clients, &http.Client{
			Timeout: patience,
			// Idle connections are given up before an entry point would: else a request
			// might meet the end of its connection on the way.
			Transport: &http.Transport{DialContext: mesh.Dial(r.Name), MaxIdleConnsPerHost: 1000, IdleConnTimeout: 20 * time.Second},
		})
	}
	for i := range w.People {
		u.books.Owner(w.People[i].Name)
	}
	return u
}

// close lets idle connections go.
func (u *users) close() {
	for _, c := range u.clients {
		c.CloseIdleConnections()
	}
}

// draw is one request of the load.
func (u *users) draw(s load.Shot) func(ctx context.Context) {
	a := u.acts.next()
	id := "n" + strconv.FormatUint(s.Number, 10)
	at := u.world.Where(&u.world.People[a.who], u.where.crowd())
	return func(ctx context.Context) {
		k, err := u.carryOut(ctx, a, id, at)
		switch {
		case err == nil:
			u.seen.Add(s.Due, u.clock.Now().Sub(s.Due), k)
		case ctx.Err() == nil: // Else the run was given up.
			u.faults.add(failed, "%s by %s at %s: %v", u.world.People[a.whose].Name, u.world.People[a.who].Name, u.world.Regions[at].Name, err)
		}
	}
}

// carryOut does what an act says from a place, and keeps the books.
func (u *users) carryOut(ctx context.Context, a act, id string, at Site) (kind, error) {
	who, owner := &u.world.People[a.who], u.world.People[a.whose].Name
	k := kind{at: at, way: who.Way, crowd: who.Crowd}
	base, err := u.base(ctx, a, at)
	if err != nil {
		return k, err
	}
	method, want := http.MethodGet, http.StatusOK
	var body io.Reader
	atLeast := u.books.Kept(owner)
	if a.write {
		b, err := json.Marshal(notes.Note{ID: id, By: who.Name, Text: a.note})
		if err != nil {
			return k, err
		}
		method, want, body = http.MethodPost, http.StatusCreated, bytes.NewReader(b)
		u.books.Sent(owner, id)
	}
	var page struct {
		notes.Page
		ID string `json:"id"`
	}
	h, err := u.ask(ctx, who, at, method, base+"/u/"+url.PathEscape(owner)+"/notes", body, want, &page)
	if err != nil {
		if not := (*answerError)(nil); a.write && errors.As(err, &not) && not.status < http.StatusInternalServerError {
			u.books.Refused(owner, id)
		}
		return k, err
	}
	if a.write {
		u.books.Acknowledged(owner, id)
	} else if page.Count < atLeast {
		u.faults.add(overtaken, "%s had %d notes and showed %d at %s", owner, atLeast, page.Count, page.Site)
	}
	return k, u.judge(&k, h, page.Site)
}

// judge looks at what an answer says of its way.
func (u *users) judge(k *kind, h http.Header, servedBy string) error {
	var known bool
	if k.served, known = u.sites[servedBy]; !known {
		return fmt.Errorf("served by %q", servedBy)
	}
	if said := h.Get("Penstock-Site"); said != servedBy {
		u.faults.add(misnamed, "%s served, and the answer says %q", servedBy, said)
	}
	hops := h.Get("Penstock-Hops")
	n, err := strconv.Atoi(hops)
	if err != nil || n < 0 || n > 1 {
		u.faults.add(detour, "Penstock-Hops: %q", hops)
	}
	k.hops = n
	return nil
}

// base is the address that a person calls for somebody's data.
func (u *users) base(ctx context.Context, a act, at Site) (string, error) {
	who, whose := &u.world.People[a.who], &u.world.People[a.whose]
	call := at
	switch who.Way {
	case Nearest:
	case Stale:
		call = whose.Home
	case Sent:
		return "http://" + u.redirector + "/r/" + url.PathEscape(whose.Name), nil
	case Looked:
		u.mu.Lock()
		h, known := u.looked[[2]int{a.who, a.whose}]
		u.mu.Unlock()
		if !known || u.clock.Now().After(h.until) {
			var err error
			if h, err = u.look(ctx, who, whose.Name, at); err != nil {
				return "", err
			}
			u.mu.Lock()
			u.looked[[2]int{a.who, a.whose}] = h
			u.mu.Unlock()
		}
		call = h.site
	}
	return "http://" + u.entries[call], nil
}

// look asks the redirector.
func (u *users) look(ctx context.Context, who *Person, owner string, at Site) (hint, error) {
	var said struct {
		Site string `json:"site"`
	}
	h, err := u.ask(ctx, who, at, http.MethodGet, "http://"+u.redirector+"/v1/locations/"+url.PathEscape(owner), nil, http.StatusOK, &said)
	if err != nil {
		return hint{}, err
	}
	site, known := u.sites[said.Site]
	if !known {
		return hint{}, fmt.Errorf("the redirector says %q", said.Site)
	}
	return hint{site, u.clock.Now().Add(maxAge(h.Get("Cache-Control")))}, nil
}

// answerError is an answer that was not asked for.
type answerError struct {
	status int
	text   string
}

// Error is the answer in short.
func (e *answerError) Error() string { return fmt.Sprintf("%d %.200s", e.status, e.text) }

// ask sends a request as somebody at a place, and decodes the answer. A client
// that is sent on goes there.
func (u *users) ask(ctx context.Context, who *Person, at Site, method, address string, body io.Reader, want int, answer any) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-User", who.Name)
	r.Header.Set("X-Forwarded-For", u.world.Address(who, at))
	resp, err := u.clients[at].Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != want {
		return nil, fmt.Errorf("%s %s: %w", method, r.URL.Path, &answerError{resp.StatusCode, string(bytes.TrimSpace(b))})
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return nil, fmt.Errorf("%s %s: %.200s: %w", method, r.URL.Path, b, err)
	}
	return resp.Header, nil
}
