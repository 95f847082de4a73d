package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/subject"
)

// Advice says who should claim what. It only saves work: two who both think so
// are safe, only slow. Implementations are safe for concurrent use.
type Advice interface {
	// Mine reports whether this process should have the partition now.
	Mine(group string, partition int) bool
}

// Always is the advice of a process that is alone.
type Always struct{}

// Mine is always true.
func (Always) Mine(string, int) bool { return true }

const (
	// memberTTL is how long a member is taken to live without a word.
	memberTTL = 5 * time.Second
	// memberEvery is how often a member says that it lives.
	memberEvery = memberTTL / 4
)

// member is what a process says in the bucket members.
type member struct {
	Group      string `json:"group"`
	Partitions []int  `json:"partitions"`
}

// Members is the advice from the KV bucket members: every live process of a
// group scores each partition by a hash of both, and the highest should have
// it, so that few partitions move when one comes or goes.
type Members struct {
	opts Options
	self string

	mu    sync.Mutex
	ready bool // the bucket's content is known
	live  map[string]heard
}

type heard struct {
	member
	at time.Time
}

// NewMembers returns the advice for the aggregator of these options; Run keeps
// it up to date.
func NewMembers(o Options) *Members {
	self := "aggregator." + subject.Encode(o.Group) + "." + subject.Encode(o.Owner)
	return &Members{opts: o, self: self, live: map[string]heard{}}
}

// Mine implements Advice. Nothing is anyone's before the bucket was read.
func (m *Members) Mine(group string, partition int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready || group != m.opts.Group || !slices.Contains(m.opts.Partitions, partition) {
		return false
	}
	mine := score(m.self, group, partition)
	now := m.opts.Clock.Now()
	for key, h := range m.live {
		if key == m.self || now.Sub(h.at) > memberTTL || h.Group != group || !slices.Contains(h.Partitions, partition) {
			continue
		}
		if s := score(key, group, partition); s > mine || s == mine && key > m.self {
			return false
		}
	}
	return true
}

// Known reports whether the bucket has been read, so that Mine is an answer.
func (m *Members) Known() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready
}

func score(key, group string, partition int) uint64 {
	return xxhash.Sum64String(fmt.Sprintf("%s/%s/%d", key, group, partition))
}

// Run says that this process lives and listens to the others until the context
// ends. A bus that cannot be reached is tried again: without it nothing can be
// claimed either.
func (m *Members) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := m.follow(ctx); err != nil && ctx.Err() == nil {
			m.opts.Logger.Warn().Err(err).Msg("cannot follow the members")
			pause(ctx, m.opts.Clock, retryMost)
		}
	}
	return nil
}

func (m *Members) follow(ctx context.Context) error {
	kv, err := m.opts.Client.KV(ctx, subject.MembersKV)
	if err != nil {
		return err
	}
	if err := m.say(ctx, kv); err != nil {
		return err
	}
	defer m.leave(ctx, kv)
	watch, err := kv.Watch(ctx, "aggregator."+subject.Encode(m.opts.Group)+".*")
	if err != nil {
		return fmt.Errorf("watch members: %w", err)
	}
	defer func() { _ = watch.Stop() }()
	tick := m.opts.Clock.NewTicker(memberEvery)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-watch.Updates():
			if !ok {
				return fmt.Errorf("watch members: it ended")
			}
			m.hear(e)
		case <-tick.C():
			if err := m.say(ctx, kv); err != nil {
				m.opts.Logger.Warn().Err(err).Msg("cannot say that this member lives")
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Members) say(ctx context.Context, kv jetstream.KeyValue) error {
	body, err := json.Marshal(member{Group: m.opts.Group, Partitions: m.opts.Partitions})
	if err != nil {
		return fmt.Errorf("member: %w", err)
	}
	if _, err := kv.Put(ctx, m.self, body); err != nil {
		return fmt.Errorf("member %s: %w", m.self, err)
	}
	return nil
}

// leave takes this process out of the bucket, so that others need not wait for
// its time to live.
func (m *Members) leave(ctx context.Context, kv jetstream.KeyValue) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := kv.Delete(ctx, m.self); err != nil {
		m.opts.Logger.Debug().Err(err).Msg("cannot take this member out; it expires")
	}
}

// hear notes what a member said; nil marks the end of what was there before.
func (m *Members) hear(e jetstream.KeyValueEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e == nil {
		m.ready = true
		return
	}
	key := e.Key()
	if e.Operation() != jetstream.KeyValuePut {
		delete(m.live, key)
		return
	}
	h := heard{at: m.opts.Clock.Now()}
	if err := json.Unmarshal(e.Value(), &h.member); err != nil || !strings.HasPrefix(key, "aggregator.") {
		m.opts.Logger.Warn().Str("key", key).Msg("a member that says nothing readable: left out of the advice")
		return
	}
	m.live[key] = h
}
