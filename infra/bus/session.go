package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	// pullExpires ends a request that finds too little; a new one follows.
	pullExpires = 10 * time.Second
	// heartbeat is how often the server says that it still knows a request.
	// Two of them missing means that it does not.
	heartbeat = time.Second
	// tick is how long a session waits before it looks around.
	tick = 250 * time.Millisecond
	// inactive is how long a consumer outlives its reader's last request.
	inactive = 5 * time.Minute
)

// Reasons for which a consumer is made anew.
const (
	whyGap         = "gap"         // a consumer sequence is missing
	whyReconnected = "reconnected" // the connection was lost and is back
	whySilent      = "silent"      // no heartbeats: the server forgot our request
	whyStalled     = "stalled"     // messages wait and none is delivered (P22)
	whyRefused     = "refused"     // the server refused a request or lost the consumer
	whyClosed      = "closed"      // the subscription ended
)

// session is a reader's time with one consumer.
type session struct {
	r        *Reader
	consumer string
	sub      *nats.Subscription
	request  []byte
	subject  string // of requests

	asked      int    // bytes asked for and not yet handed on
	requests   int    // made in this session; the number of each is in its inbox
	delivered  uint64 // consumer sequence of the last message
	last       uint64 // of the stream, when the consumer was made
	reconnects uint64
}

// pullRequest is the body of a request for messages.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// open makes the consumer and subscribes to an inbox of its own, so that what a
// former consumer still sends is not taken for this one's.
func (s *session) open(ctx context.Context) error {
	c := s.r.c
	s.reconnects = c.NC.Stats().Reconnects
	s.consumer = "r-" + nuid.Next()
	_, err := c.JS.CreateConsumer(ctx, s.r.stream, jetstream.ConsumerConfig{
		Name: s.consumer, Description: "reader of " + c.bus.opts.Name,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.r.next,
		AckPolicy: jetstream.AckNonePolicy, FilterSubjects: s.r.subjects,
		InactiveThreshold: inactive, Replicas: 1, MemoryStorage: true, MaxDeliver: 1,
	})
	if err != nil {
		return fmt.Errorf("read stream %s: make a consumer: %w", s.r.stream, err)
	}
	inbox := c.NC.NewInbox()
	if s.sub, err = c.NC.SubscribeSync(inbox + ".*"); err != nil {
		return fmt.Errorf("read stream %s: %w", s.r.stream, err)
	}
	s.r.held.Store(s.sub)
	// What may come is bounded by what is asked for.
	if err := s.sub.SetPendingLimits(-1, -1); err != nil {
		return fmt.Errorf("read stream %s: %w", s.r.stream, err)
	}
	s.subject = "$JS.API.CONSUMER.MSG.NEXT." + s.r.stream + "." + s.consumer
	s.request, err = json.Marshal(pullRequest{
		Batch: 1 << 20, MaxBytes: s.ask(), Expires: pullExpires, Heartbeat: heartbeat,
	})
	return err
}

// ask is the size of one request: more than any one message, or the request
// would end without it.
func (s *session) ask() int { return max(pullBytes, int(s.r.c.NC.MaxPayload())+64<<10) }

// close forgets the consumer. The server would do so by itself, later.
func (s *session) close() {
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // fails only if it is over already
	}
	if s.consumer == "" || !s.r.c.NC.IsConnected() {
		return
	}
	_ = s.r.c.NC.Publish("$JS.API.CONSUMER.DELETE."+s.r.stream+"."+s.consumer, nil)
}

// run delivers until something is wrong and says what, or until ctx ends.
func (s *session) run(ctx context.Context) (why string) {
	clk := s.r.c.bus.opts.Clock
	stop := context.AfterFunc(ctx, func() { _ = s.sub.Unsubscribe() })
	defer stop()
	heard, moved := clk.Now(), clk.Now()
	for ctx.Err() == nil {
		if err := s.pull(); err != nil {
			return whyReconnected
		}
		m, err := s.sub.NextMsg(tick)
		switch {
		case err == nil:
			heard = clk.Now()
			ok, why := s.take(ctx, m)
			if why != "" || ctx.Err() != nil {
				return why
			}
			if ok {
				// The caller may have kept us waiting; that is no silence.
				heard = clk.Now()
				moved = heard
			}
			continue
		case !errors.Is(err, nats.ErrTimeout):
			return whyClosed
		}
		if s.r.c.NC.Stats().Reconnects != s.reconnects {
			return whyReconnected
		}
		now := clk.Now()
		if now.Sub(heard) > 2*heartbeat+tick {
			return whySilent
		}
		if now.Sub(moved) >= s.r.c.bus.opts.Stall {
			if why := s.look(ctx); why != "" {
				return why
			}
			moved = clk.Now()
		}
	}
	return ""
}

// pull keeps enough asked for.
func (s *session) pull() error {
	for s.asked <= pullWindow-pullBytes {
		s.requests++
		reply := s.sub.Subject[:len(s.sub.Subject)-1] + strconv.Itoa(s.requests)
		if err := s.r.c.NC.PublishRequest(s.subject, reply, s.request); err != nil {
			return err
		}
		s.asked += s.ask()
	}
	return nil
}

// take handles what the server sent. It reports whether that was a message
// which was delivered, and why to go on with another consumer, if so.
func (s *session) take(ctx context.Context, m *nats.Msg) (delivered bool, why string) {
	if len(m.Data) == 0 && m.Header.Get("Status") != "" && m.Reply == "" {
		return false, s.status(m)
	}
	meta, err := m.Metadata()
	if err != nil || meta.Sequence.Consumer != s.delivered+1 {
		return false, whyGap
	}
	s.delivered++
	s.asked -= m.Size()
	c := s.r.c
	msg := Msg{
		Subject: c.bus.bare(m.Subject), Header: m.Header, Data: m.Data,
		Seq: meta.Sequence.Stream, Time: meta.Timestamp, Pending: meta.NumPending,
	}
	if !s.r.deliver(ctx, msg) {
		return false, ""
	}
	if meta.NumPending == 0 {
		s.r.pass(s.last)
	}
	return true, ""
}

// status handles the server's words about a request.
func (s *session) status(m *nats.Msg) (why string) {
	switch m.Header.Get("Status") {
	case "100": // heartbeat
		return ""
	case "408", "409":
		// The request is over; what it had left is not coming any more.
		left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Bytes"))
		if err != nil {
			return whyRefused // deleted, no leader, shutting down
		}
		s.asked = max(0, s.asked-left)
		return ""
	default:
		return whyRefused
	}
}

// look asks the server how things are when nothing has come for a while.
// Messages waiting mean that delivery has stalled; none mean that the reader
// has seen everything of its own up to the stream's end.
func (s *session) look(ctx context.Context) (why string) {
	c := s.r.c
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	st, err := c.JS.Stream(ctx, s.r.stream)
	if err != nil {
		return "" // the connection or the server: heartbeats will tell
	}
	last := st.CachedInfo().State.LastSeq
	con, err := st.Consumer(ctx, s.consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return whyRefused
	}
	if err != nil {
		return ""
	}
	info := con.CachedInfo()
	if info.Delivered.Consumer != s.delivered {
		return "" // something is on its way
	}
	if info.NumPending > 0 {
		return whyStalled
	}
	s.r.pass(last)
	return ""
}
