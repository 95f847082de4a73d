package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

// startTimeout bounds the start of the embedded server. Recovery of a large
// store happens within it, so it is generous.
const startTimeout = 2 * time.Minute

// usableWithin bounds how long a server that has started may take to answer on its port:
// as long as a busy machine may stand still.
const usableWithin = 10 * time.Second

// abandonTimeout bounds how long a server whose start has failed may take to let
// go of its files: whoever started it wants to hear why, not to wait.
const abandonTimeout = 5 * time.Second

// settleTimeout is how long a start that has failed may take to its end before
// it is cut short.
const settleTimeout = 250 * time.Millisecond

// embedded is a NATS server inside the process. It can be stopped and started
// again over the same folder; connections made through it find the new one.
type embedded struct {
	opts *server.Options
	log  zerolog.Logger
	lock *os.File

	mu  sync.Mutex
	srv *server.Server
}

func startEmbedded(ctx context.Context, o *Options) (*embedded, error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("bus folder: %w", err)
	}
	lock, err := waitForFolder(ctx, o)
	if err != nil {
		return nil, err
	}
	so := &server.Options{
		ServerName:             o.Name,
		DontListen:             true,
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               o.Dir,
		DisableJetStreamBanner: true,
		MaxPayload:             MaxMessage,
		// Streams carry their own bounds; reserving them against what the disk
		// has now would refuse to start on a small one.
		JetStreamMaxStore:  1 << 50,
		JetStreamMaxMemory: 1 << 30,
		SyncAlways:         o.Sync == SyncAlways,
		// Readers that are behind are fed from disk; a slow one is cut off at
		// 64 MB and reads on from where it was.
		MaxPending: 64 << 20,
	}
	if o.Listen != "" {
		if err := listenAt(so, o.Listen); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	e := &embedded{opts: so, log: o.Logger, lock: lock}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return e, nil
}

func listenAt(so *server.Options, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("bus: listen at %q: %w", listen, err)
	}
	p, err := strconv.Atoi(port)
	if err != nil || p < 0 || p > 65535 {
		return fmt.Errorf("bus: listen at %q: expected a port from 0 to 65535", listen)
	}
	if p == 0 {
		p = server.RANDOM_PORT
	}
	so.DontListen, so.Host, so.Port = false, host, p
	return nil
}

// lockWait is how long a folder may still be held by a process that was killed
// and is being taken down.
const lockWait = 2 * time.Second

// waitForFolder takes the folder, waiting a moment for a process that is on its
// way out.
func waitForFolder(ctx context.Context, o *Options) (*os.File, error) {
	until := o.Clock.Now().Add(lockWait)
	for {
		lock, err := lockFolder(o.Dir)
		if !errors.Is(err, ErrInUse) || o.Clock.Now().After(until) {
			return lock, err
		}
		if serr := o.Clock.Sleep(ctx, 20*time.Millisecond); serr != nil {
			return nil, err
		}
	}
}

// lockFolder takes the folder for this process; the lock goes with the process,
// however it ends.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "penstock.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("bus folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner := make([]byte, 32)
		n, _ := f.ReadAt(owner, 0)
		return nil, errors.Join(fmt.Errorf("%s (process %s): %w", dir, owner[:n], ErrInUse), f.Close())
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bus folder: %w", err), f.Close())
		}
	}
	return f, nil
}

// start runs a server and waits until it can be used, it has failed or ctx ends.
func (e *embedded) start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.srv != nil {
		return nil
	}
	if err := e.tryPort(ctx); err != nil {
		return err
	}
	srv, err := server.NewServer(e.opts)
	if err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	fatal := make(chan string, 1)
	srv.SetLoggerV2(serverLog{e.log, fatal}, false, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		srv.Start()
	}()
	if err := waitForStart(ctx, srv, started, fatal); err != nil {
		e.abandon(srv, started)
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	// A port that was chosen once stays, so that a restart is found again.
	if addr, ok := srv.Addr().(*net.TCPAddr); ok && !e.opts.DontListen {
		e.opts.Port = addr.Port
	}
	e.srv = srv
	return nil
}

// tryPort takes the port for a moment. The server itself would log that it
// cannot listen and then run on without a port.
func (e *embedded) tryPort(ctx context.Context) error {
	if e.opts.DontListen || e.opts.Port == server.RANDOM_PORT {
		return nil
	}
	at := net.JoinHostPort(e.opts.Host, strconv.Itoa(e.opts.Port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err == nil {
		err = l.Close()
	}
	// The address is said once.
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	if err != nil {
		return fmt.Errorf("bus: cannot listen at %s: %w", at, err)
	}
	return nil
}

// waitForStart waits until Start has come back and says how it went. What the
// server gives up for it tells only its log.
func waitForStart(ctx context.Context, srv *server.Server, started <-chan struct{}, fatal <-chan string) error {
	limit, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-started:
	case <-limit.Done():
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("told to stop while it starts: %w", err)
		}
		return fmt.Errorf("not ready after %v (its log lines say why)", startTimeout)
	}
	select {
	case why := <-fatal:
		return errors.New(why)
	default:
	}
	if !srv.ReadyForConnections(usableWithin) || !srv.JetStreamEnabled() {
		return errors.New("it has started and cannot be used (its log lines say why)")
	}
	return nil
}

// abandon shuts a server down whose start has failed. Such a one may never say
// that it is down, so the wait is bounded; what is left ends with the process.
func (e *embedded) abandon(srv *server.Server, started <-chan struct{}) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// A start that is all but over is let go to its end: what it still begins
		// would race with the shutdown. One that recovers a large store is cut short.
		soon, cancel := context.WithTimeout(context.Background(), settleTimeout)
		defer cancel()
		select {
		case <-started:
		case <-soon.Done():
		}
		srv.Shutdown()
		<-started // What Start still begins must not be waited for while it begins it.
		srv.WaitForShutdown()
	}()
	limit, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	select {
	case <-gone:
	case <-limit.Done():
		e.log.Warn().Dur("waited", abandonTimeout).Msg("the embedded NATS server did not start and does not stop")
	}
}

// stop takes the server down and waits until it has let go of its files.
func (e *embedded) stop() {
	e.mu.Lock()
	srv := e.srv
	e.srv = nil
	e.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// InProcessConn connects to whichever server runs now (nats.InProcessServer).
func (e *embedded) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	srv := e.srv
	e.mu.Unlock()
	if srv == nil {
		return nil, errors.New("the embedded NATS server is down")
	}
	return srv.InProcessConn()
}

func (e *embedded) url() string {
	if e.opts.DontListen {
		return ""
	}
	return "nats://" + net.JoinHostPort(e.opts.Host, strconv.Itoa(e.opts.Port))
}

func (e *embedded) close() error {
	e.stop()
	if err := e.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("bus folder: %w", err)
	}
	return nil
}

// serverLog hands the server's lines to zerolog. Its notices are of no interest
// to somebody who runs Penstock, so they are debug.
// The first of those that it does not survive is also told to fatal.
type serverLog struct {
	l     zerolog.Logger
	fatal chan<- string
}

func (s serverLog) Noticef(f string, v ...any) { s.l.Debug().Str("part", "nats").Msgf(f, v...) }
func (s serverLog) Warnf(f string, v ...any)   { s.l.Warn().Str("part", "nats").Msgf(f, v...) }
func (s serverLog) Errorf(f string, v ...any)  { s.l.Error().Str("part", "nats").Msgf(f, v...) }
func (s serverLog) Debugf(f string, v ...any)  { s.l.Trace().Str("part", "nats").Msgf(f, v...) }
func (s serverLog) Tracef(f string, v ...any)  { s.l.Trace().Str("part", "nats").Msgf(f, v...) }

func (s serverLog) Fatalf(f string, v ...any) {
	s.l.Error().Str("part", "nats").Msgf(f, v...)
	select {
	case s.fatal <- fmt.Sprintf(f, v...):
	default: // The first reason is the one that counts.
	}
}
