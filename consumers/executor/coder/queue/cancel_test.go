package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The answers of a store over TCP: the first byte that a client sends asks for one.
const (
	atOnce   = 'a'
	never    = 'n' // the connection is held until the client closes it
	together = 't' // once as many have asked so as there are connections
	later    = 'l' // once two have asked that will never be answered
)

// tcpStore is a store that clients reach over sockets.
type tcpStore struct {
	t        *testing.T
	listener net.Listener
	serving  sync.WaitGroup
	closed   chan error   // what reading said when a client left that was never answered
	awaited  atomic.Int32 // how many are to ask together before all are answered
	answer   chan struct{}
	silent   atomic.Int32 // how many have asked that will never be answered
	two      chan struct{}
}

func startStore(t *testing.T, connections int32) *tcpStore {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &tcpStore{t: t, listener: l, closed: make(chan error, 1000), answer: make(chan struct{}), two: make(chan struct{})}
	s.awaited.Store(connections)
	s.serving.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			s.serving.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.serving.Wait()
	})
	return s
}

func (s *tcpStore) serve(c net.Conn) {
	defer c.Close()
	ask := make([]byte, 1)
	if _, err := io.ReadFull(c, ask); err != nil {
		return // it left before it asked
	}
	switch ask[0] {
	case never:
		if s.silent.Add(1) == 2 {
			close(s.two)
		}
		_, err := c.Read(ask)
		s.closed <- err
		return
	case together:
		if s.awaited.Add(-1) == 0 {
			close(s.answer)
		}
		<-s.answer
	case later:
		<-s.two
	}
	_, _ = c.Write(ask) // who has left meanwhile doesn't want it
}

// task asks for one answer over a socket of its own, which closes when the context ends.
func (s *tcpStore) task(ask byte) Task {
	return Task{Store: string(ask), Run: func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.listener.Addr().String())
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer c.Close()
		defer stop()
		if _, err := c.Write([]byte{ask}); err != nil {
			return err
		}
		_, err = io.ReadFull(c, []byte{0})
		return err
	}}
}

// TestACancelledTaskClosesItsSocket, and its connection is used again.
func TestACancelledTaskClosesItsSocket(t *testing.T) {
	t.Parallel()
	const connections = 4
	store := startStore(t, connections)
	s := newServed(t, Options{CoreOptions: CoreOptions{Connections: connections}})
	defer s.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Two are answered; the sockets of the other two close.
	if err := s.q.Do(ctx, reading(2, store.task(never), store.task(later), store.task(never), store.task(later))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case err := <-store.closed:
			if !errors.Is(err, io.EOF) {
				t.Logf("the store saw its client leave by %v", err)
			}
		case <-ctx.Done():
			t.Fatal("a cancelled task's socket stays open")
		}
	}
	// All connections are there again: the store answers only when four ask at once.
	four := store.task(together)
	if err := s.q.Do(ctx, reading(4, four, four, four, four)); err != nil {
		t.Fatal(err)
	}
}

// TestAStoreThatNeverAnswers: many read at (12,6), and one store of the twelve is dead.
// All are answered, all sockets are closed at the end and no connection is in use.
func TestAStoreThatNeverAnswers(t *testing.T) {
	t.Parallel()
	store := startStore(t, 1)
	s := newServed(t, Options{CoreOptions: CoreOptions{Connections: 16}})
	const clients, each = 4, 25
	var all, ended sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				tasks := make([]Task, 12)
				for i := range tasks {
					tasks[i] = store.task(atOnce)
				}
				tasks[0] = store.task(never)
				r := reading(6, tasks...)
				ended.Add(1)
				r.Ended = ended.Done
				if err := s.q.Do(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ended.Wait()
	if st := s.q.State(); st.InUse != 0 || st.Finished != clients*each || st.Failed != 0 || st.Done+st.Cancelled+st.Dropped != 12*clients*each {
		t.Errorf("%+v", st)
	}
	s.stop()
	_ = store.listener.Close()
	store.serving.Wait() // hangs if a socket were open
}

// The delay of a store, PAPERS §3.2 for chunks of half a megabyte.
const (
	fixed = 26 * time.Millisecond // Δ
	mean  = 20 * time.Millisecond // Ψ
)

// harmonic is 1 + 1/2 + … + 1/n.
func harmonic(n int) (h float64) {
	for i := 1; i <= n; i++ {
		h += 1 / float64(i)
	}
	return h
}

// TestConnectionsInUseReturnToTheModel: at (12,6) a request uses n·Δ + k·Ψ of connections
// (PAPERS §3.3). While one of the twelve stores is fifty times slower it is that of the
// other eleven, and the whole delay of the request for the slow one, which is cut off
// then. Afterwards it is the model's figure again. Stores are reached over pipes, which
// close when their task is told to end; time is virtual.
func TestConnectionsInUseReturnToTheModel(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 16}}, func(t *testing.T, s *served) {
		const n, k, requests = 12, 6, 400
		delta, psi := fixed.Seconds(), mean.Seconds()
		model := n*delta + k*psi
		// The k-th of the eleven comes after this.
		delay := delta + psi*(harmonic(n-1)-harmonic(n-1-k))
		rng := rand.New(rand.NewPCG(6, 12))
		for _, phase := range []struct {
			name string
			slow float64
			want float64
		}{
			{"before", 1, model}, {"one store 50 times slower", 50, (n-1)*delta + k*psi + delay}, {"after", 1, model},
		} {
			from := len(s.took())
			for range requests {
				tasks := make([]Task, n)
				for i := range tasks {
					took := fixed + time.Duration(rng.ExpFloat64()*float64(mean))
					if i == 0 {
						took = time.Duration(phase.slow * float64(took))
					}
					tasks[i] = piped(took)
				}
				if err := s.q.Do(t.Context(), reading(k, tasks...)); err != nil {
					t.Fatal(err)
				}
				if synctest.Wait(); s.q.State().InUse != 0 {
					t.Fatalf("%s: in use after a request: %+v", phase.name, s.q.State())
				}
			}
			var used time.Duration
			for _, r := range s.records[from:] {
				used += r.Held
			}
			if got := used.Seconds() / requests; got < 0.97*phase.want || got > 1.03*phase.want {
				t.Errorf("%s: a request uses %.1f ms of connections, by the model %.1f ms", phase.name, 1000*got, 1000*phase.want)
			}
		}
	})
}

// piped is a task that reads an answer from a server at the other end of a pipe, which
// answers after so long or ends when the pipe closes.
func piped(took time.Duration) Task {
	return Task{Run: func(ctx context.Context) error {
		mine, its := net.Pipe()
		var server sync.WaitGroup
		server.Go(func() {
			defer its.Close()
			gone := make(chan struct{})
			server.Go(func() {
				defer close(gone)
				_, _ = its.Read(make([]byte, 1)) // until the client leaves
			})
			select {
			case <-time.After(took):
				_, _ = its.Write([]byte{1})
			case <-gone:
			}
		})
		stop := context.AfterFunc(ctx, func() { _ = mine.Close() })
		_, err := io.ReadFull(mine, []byte{0})
		stop()
		_ = mine.Close()
		server.Wait()
		if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		return nil
	}}
}

// TestGoneWithTheAnswer: a caller that goes as its answer is decided takes nothing of the
// rest with it, in whichever order it hears of the two.
func TestGoneWithTheAnswer(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 1}}, func(t *testing.T, s *served) {
		const times = 20
		for range times {
			ctx, gone := context.WithCancel(t.Context())
			r := &Request{Op: Write, Rest: Finish, Plan: func(Code) Plan {
				gone()
				return Plan{Tasks: []Task{sleeps("a", time.Second)}}
			}}
			if err := s.q.Do(ctx, r); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if st := s.q.State(); st.Done != times || st.Cancelled+st.Dropped != 0 {
			t.Errorf("%+v", st)
		}
	})
}
