package s3

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/infra/testserver"
)

// line carries the connections of one store to the server, and can be cut.
type line struct {
	server string
	l      net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

func newLine(t *testing.T) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &line{server: strings.TrimPrefix(testserver.VersityGW(t).Endpoint, "http://"), l: l, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	t.Cleanup(func() { _ = l.Close(); s.set(true); s.wg.Wait() })
	return s
}

func (s *line) accept() {
	for {
		in, err := s.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", s.server)
		if err != nil || !s.keep(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		s.wg.Go(func() { s.copy(in, out) })
		s.wg.Go(func() { s.copy(out, in) })
	}
}

func (s *line) keep(conns ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return false
	}
	for _, c := range conns {
		s.conns[c] = true
	}
	return true
}

func (s *line) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = to.Close(), from.Close()
	delete(s.conns, to)
	delete(s.conns, from)
}

// set cuts the line, or mends it.
func (s *line) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	if down {
		for c := range s.conns {
			_ = c.Close()
		}
	}
}

// TestConformance runs the suite of all stores against a real server.
func TestConformance(t *testing.T) {
	if !open(t, options(t)).Capabilities().Barrier {
		t.Fatal("no barrier: the suite would leave out what matters")
	}
	lines := map[objectstore.Store]*line{}
	other := func(t *testing.T, s objectstore.Store) *Store {
		o := s.(*Store).b.o
		o.Endpoint = testserver.VersityGW(t).Endpoint
		return open(t, o)
	}
	newStore := func(t *testing.T) objectstore.Store {
		o := options(t)
		if !strings.HasSuffix(t.Name(), "/hold_lost") {
			return open(t, o)
		}
		l := newLine(t)
		o.Endpoint = "http://" + l.l.Addr().String()
		s := open(t, o)
		lines[s] = l
		return s
	}
	objectstoretest.Run(t, newStore, objectstoretest.Options{
		Foreign: foreign, Leave: leave, Large: 24 << 20, Memory: 3 * minPart, Many: 60,
		Other: func(t *testing.T, s objectstore.Store) objectstore.Store { return other(t, s) },
		Lose: func(t *testing.T, s objectstore.Store, _ objectstore.Held) {
			lines[s].set(true)
			// Another takes the barrier for lost, and writes.
			if _, err := other(t, s).Put(t.Context(), "o", "b", strings.NewReader("x"), objectstore.Mark{}); err != nil {
				t.Fatal(err)
			}
			lines[s].set(false)
		},
	})
}

// foreign puts objects beside and among an owner's that are nobody's.
func foreign(t *testing.T, s objectstore.Store, owner string) (check func(t *testing.T)) {
	b := s.(*Store).b
	put := map[string]string{
		string(b.layout) + "loose":                           "beside the owners",
		string(b.layout) + owner + "/later":                  "plain, but later than the document",
		b.layout.blobs(owner) + "UPPER":                      "not an id as it is written",
		b.layout.blobs(owner) + "sub/a":                      "deeper than blobs lie",
		b.layout.docs() + ".o.sgwtmp.1":                      "what a gateway leaves",
		"some/" + owner + "/a":                               "above the prefix",
		string(b.layout) + ours + "/other/" + element(owner): "in no folder of ours",
	}
	plant(t, b, put)
	before := all(t, b)
	return func(t *testing.T) {
		t.Helper()
		now := all(t, b)
		for key := range put {
			if now[key] == "" || now[key] != before[key] {
				t.Errorf("foreign %s was touched", key)
			}
		}
	}
}

// leave leaves what a process leaves that dies while it puts: an object that no
// document names, and an upload that isn't completed.
func leave(t *testing.T, s objectstore.Store, owner string) (gone func(t *testing.T)) {
	b := s.(*Store).b
	if _, err := b.PutBlob(t.Context(), owner, "left-whole", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	key, _ := b.layout.blob(owner, "left-parts")
	if _, err := b.wire.NewMultipartUpload(t.Context(), b.o.Bucket, key, noOptions); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		for key := range all(t, b) {
			if strings.Contains(key, "left-whole") {
				t.Error("an object that nobody names is left")
			}
		}
		if p := pending(t, b); len(p) > 0 {
			t.Errorf("uploads are left: %q", p)
		}
	}
}
