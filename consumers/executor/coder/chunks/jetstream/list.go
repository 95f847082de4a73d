package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/executor/coder/chunks"
)

// List implements chunks.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]chunks.Entry, error) {
	if err := chunks.CheckRange(0, int64(limit)); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil || limit == 0 || !possible(prefix) {
		return nil, err
	}
	now := s.o.Clock.Now()
	l, ok := s.seen.take(prefix, after, limit, now)
	if !ok {
		var err error
		if l, err = s.scan(ctx, prefix, after, max(limit, keep)); err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, ended(ctx, err))
		}
	}
	found := l.entries[:min(limit, len(l.entries))]
	if l.entries = l.entries[len(found):]; len(found) == limit { // somebody may go on
		l.prefix, l.after, l.at = prefix, found[len(found)-1].Key, now
		s.seen.put(l)
	}
	return found, nil
}

// scan reads all entries that a prefix may have, and keeps the first after after.
func (s *Store) scan(ctx context.Context, prefix, after string, limit int) (seen, error) {
	page := page{limit: limit}
	below := s.root + ".b."
	whole := prefix[:strings.LastIndexByte(prefix, '/')+1]
	err := s.each(ctx, below+toSubject.Replace(whole)+">", func(m *nats.Msg) error {
		key := toKey.Replace(m.Subject[len(below):])
		size, err := sizeOf(m.Header)
		wanted := strings.HasPrefix(key, prefix) && key > after
		if ours := err == nil && chunks.CheckKey(key) == nil; ours && wanted {
			page.add(chunks.Entry{Key: key, Bytes: size})
		}
		return nil
	})
	first := page.first()
	return seen{entries: first, cut: page.cut}, err
}

const (
	// keep is how many entries of a scan serve the pages that come after the first.
	keep = 100_000
	// fresh is how long they do.
	fresh = time.Minute
)

// seen is what a scan saw beyond the page that it was made for. A listing that goes on
// where that page ended goes on in it: without, each page would scan all blobs.
type seen struct {
	prefix, after string
	entries       []chunks.Entry
	cut           bool // there were more
	at            time.Time
}

// lastSeen is that of the last scan that saw more than it was asked for.
type lastSeen struct {
	mu sync.Mutex
	seen
}

func (l *lastSeen) put(s seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = s
}

// take gives what goes on after a key, if that is there and enough.
func (l *lastSeen) take(prefix, after string, limit int, now time.Time) (seen, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seen
	if after == "" || s.prefix != prefix || s.after != after || now.Sub(s.at) > fresh || s.cut && len(s.entries) < limit {
		return seen{}, false
	}
	l.seen = seen{}
	return s, true
}

// possible tells whether keys may begin so: a subject that can't be must not be asked for.
func possible(prefix string) bool {
	whole := strings.TrimSuffix(prefix, "/")
	return whole == "" && prefix == "" || chunks.CheckKey(whole) == nil
}

// page keeps the first entries of many that come in any order.
type page struct {
	limit   int
	entries []chunks.Entry
	cut     bool // there were more
}

func (p *page) add(e chunks.Entry) {
	if p.entries = append(p.entries, e); len(p.entries) >= 2*p.limit+1000 {
		p.entries = p.first()
	}
}

func (p *page) first() []chunks.Entry {
	slices.SortFunc(p.entries, func(a, b chunks.Entry) int { return strings.Compare(a.Key, b.Key) })
	p.cut = p.cut || len(p.entries) > p.limit
	return p.entries[:min(p.limit, len(p.entries))]
}

const (
	// batch is how many messages are asked for at a time.
	batch = 1000
	// lull is after how long without a message is asked whether there are any.
	lull = time.Second
)

// each calls fn with the header of the last message of each subject that a filter takes.
// The consumer is its own and gone when it returns, or a little later where the
// connection is.
func (s *Store) each(ctx context.Context, filter string, fn func(m *nats.Msg) error) error {
	create, cancel := s.within(ctx)
	defer cancel()
	c, err := s.stream.CreateConsumer(create, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: filter, HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: 30 * time.Second, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return err
	}
	conn := s.o.JS.Conn()
	defer func() { _ = conn.Publish("$JS.API.CONSUMER.DELETE."+s.name+"."+c.CachedInfo().Name, nil) }()
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	f := fetching{Store: s, sub: sub, next: "$JS.API.CONSUMER.MSG.NEXT." + s.name + "." + c.CachedInfo().Name, inbox: inbox}
	for left := c.CachedInfo().NumPending; left > 0; {
		if left, err = f.batch(ctx, fn); err != nil {
			return err
		}
	}
	return nil
}

// fetching asks a consumer for messages.
type fetching struct {
	*Store
	sub         *nats.Subscription
	next, inbox string
}

// batch asks for messages that are there, and says how many are left.
func (f *fetching) batch(ctx context.Context, fn func(m *nats.Msg) error) (left uint64, err error) {
	ask, err := json.Marshal(map[string]any{"batch": batch, "no_wait": true})
	if err != nil {
		return 0, err
	}
	if err := f.o.JS.Conn().PublishRequest(f.next, f.inbox, ask); err != nil {
		return 0, err
	}
	for range batch {
		m, err := f.receive(ctx)
		if err != nil {
			return 0, err
		}
		if m == nil { // blobs were deleted that were counted
			return 1, nil
		}
		switch m.Header.Get("Status") {
		case "":
		case "404": // there are none
			return 0, nil
		case "408", "409": // the request is over
			return 1, nil
		default:
			return 0, fmt.Errorf("the server says %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
		}
		meta, err := m.Metadata()
		if err != nil {
			return 0, err
		}
		// Headers of a consumer without bodies stand with the subject of the message.
		if err := fn(m); err != nil {
			return 0, err
		}
		if left = meta.NumPending; left == 0 {
			return 0, nil
		}
	}
	return left, nil
}

// receive waits for a message; nil if none came for a while.
func (f *fetching) receive(ctx context.Context) (*nats.Msg, error) {
	short, cancel := context.WithTimeout(ctx, lull)
	defer cancel()
	m, err := f.sub.NextMsgWithContext(short)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		if f.o.JS.Conn().IsConnected() {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %w", nats.ErrDisconnected, err)
	}
	return m, err
}

// Tidy purges pieces that no entry names and that were stored before a time, which
// somebody who died has left, and says of how many blobs.
func (s *Store) Tidy(ctx context.Context, before time.Time) (int, error) {
	old := map[string]bool{}
	below := s.piecesOf("")
	err := s.each(ctx, below+"*", func(m *nats.Msg) error {
		if meta, err := m.Metadata(); err == nil && meta.Timestamp.Before(before) {
			old[m.Subject[len(below):]] = true
		}
		return nil
	})
	if err == nil { // entries that came since are among these
		err = s.each(ctx, s.root+".b.>", func(m *nats.Msg) error {
			delete(old, m.Header.Get(idHeader))
			return nil
		})
	}
	n := 0
	for id := range old {
		if err == nil {
			if err = s.purge(ctx, id); err == nil {
				n++
			}
		}
	}
	if err != nil {
		return n, fmt.Errorf("tidy: %w", ended(ctx, err))
	}
	return n, nil
}
