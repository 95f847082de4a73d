package postgres

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/infra/testserver"
)

// hands are what the suite needs to know of a store; get finds ours in what it
// made.
func hands(get func(objectstore.Store) *Store, again func(t *testing.T, s *Store) objectstore.Store) objectstoretest.Options {
	return objectstoretest.Options{
		Lose: func(t *testing.T, s objectstore.Store, h objectstore.Held) {
			connect(t, get(s).o.URL).run(fmt.Sprintf("SELECT pg_terminate_backend(%d)", h.(*held).conn.Conn().PgConn().PID()))
		},
		Other: func(t *testing.T, s objectstore.Store) objectstore.Store { return again(t, get(s)) },
		// A process that dies in the middle of a write: its connection goes.
		Leave: func(t *testing.T, s objectstore.Store, owner string) func(*testing.T) {
			p := get(s)
			c := connect(t, p.o.URL)
			before := c.one(p.sql("SELECT count(*) FROM {S}.chunks"))
			in, out := io.Pipe()
			done := make(chan error, 1)
			go func() {
				_, err := p.Put(context.Background(), owner, "half", in, objectstore.Mark{})
				done <- err
			}()
			_, err := out.Write(make([]byte, 2*chunkSize))
			ok(t, err)
			c.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()`)
			_ = out.Close()
			if err := <-done; err == nil {
				t.Error("the write was done all the same")
			}
			return func(t *testing.T) {
				if now, is := c.one(p.sql("SELECT count(*) FROM {S}.chunks")), c.one(p.sql("SELECT count(*) FROM {S}.objects WHERE name = 'half'")); is != "0" || now > before {
					t.Errorf("%s chunks are left, there were %s", now, before)
				}
			}
		},
		Foreign: func(t *testing.T, s objectstore.Store, owner string) func(*testing.T) {
			c := connect(t, get(s).o.URL)
			c.run(`CREATE TABLE IF NOT EXISTS others (owner text, body text)`, `INSERT INTO others VALUES ('`+owner+`', 'hands off')`,
				`CREATE TABLE IF NOT EXISTS t0 (owner text, n int, data bytea, PRIMARY KEY (owner, n))`, `ALTER TABLE t0 ADD x int GENERATED ALWAYS AS (n) STORED`)
			return func(t *testing.T) {
				if c.one("SELECT body FROM others") != "hands off" {
					t.Error("a table that isn't ours was touched")
				}
			}
		},
	}
}

// TestConformance: objects that are no rows, in two databases in turn, each store
// in a schema of its own.
func TestConformance(t *testing.T) {
	urls := []string{testserver.Postgres(t), testserver.Postgres(t)}
	var n atomic.Int64
	again := func(t *testing.T, s *Store) objectstore.Store {
		o, err := Open(t.Context(), Options{URL: s.o.URL, Schema: s.o.Schema})
		ok(t, err)
		t.Cleanup(func() { _ = o.Close() })
		return o
	}
	o := hands(func(s objectstore.Store) *Store { return s.(*Store) }, again)
	o.Foreign = nil // the other test has it
	o.Large = 16 << 20
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		i := n.Add(1)
		return again(t, &Store{o: Options{URL: urls[i%2], Schema: fmt.Sprintf("site%d", i)}})
	}, o)
}

// TestConformanceOfRows: the same with objects that are rows in tables, as far as
// there are tables.
func TestConformanceOfRows(t *testing.T) {
	urls := []string{testserver.Postgres(t), testserver.Postgres(t)}
	var list []Table
	for i := range tabledNames {
		list = append(list, Table{fmt.Sprintf("t%d", i), "owner"})
		for _, url := range urls {
			connect(t, url).run(fmt.Sprintf(`CREATE TABLE t%d (owner text, n int, data bytea, PRIMARY KEY (owner, n))`, i))
		}
	}
	var n atomic.Int64
	open := func(t *testing.T, url string) objectstore.Store {
		s := open(t, url, list...)
		return tabled{s}
	}
	o := hands(func(s objectstore.Store) *Store { return s.(tabled).Store }, func(t *testing.T, s *Store) objectstore.Store { return open(t, s.o.URL) })
	o.Large, o.Many = 4<<20, 40
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		url := urls[n.Add(1)%2]
		// Empty again: the fence lets rows go when no mark is left that keeps anybody
		// off. To take it off and put it on again takes longer than most tests.
		c := connect(t, url)
		kept := "TRUNCATE penstock.copies, penstock.changes, penstock.objects, penstock.chunks"
		s := open(t, url)
		c.run(kept)
		for i := range tabledNames {
			c.run(fmt.Sprintf("DELETE FROM t%d", i))
		}
		c.run(kept)
		return s
	}, o)
}

// tabledNames are objects of the suite that lie in a table of their own.
var tabledNames = []string{"a", "b", "object", "large"}

// tabled is a store whose objects are rows of pieces of their content.
type tabled struct{ *Store }

// where is the name of the object that holds one of the suite.
func (s tabled) where(owner, name string) (object string, rows bool) {
	i := slices.Index(tabledNames, name)
	if i < 0 || !ofText.fits(owner) {
		return name, false
	}
	label := fmt.Sprintf("public.t%d", i)
	for _, t := range s.tables {
		if t.label == label {
			return t.object, true
		}
	}
	return name, false
}

func (s tabled) Put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark) (objectstore.Object, error) {
	object, rows := s.where(owner, name)
	if !rows {
		return s.Store.Put(ctx, owner, name, r, as)
	}
	in, out := io.Pipe()
	sum, size := sha256.New(), int64(0)
	go func() {
		_, err := fmt.Fprintf(out, "%s\tdata\tn\towner\n", magic)
		piece := make([]byte, 8<<10)
		for n := 0; err == nil; n++ {
			var k int
			k, err = io.ReadFull(r, piece)
			if k > 0 || n == 0 && errors.Is(err, io.EOF) {
				sum.Write(piece[:k])
				size += int64(k)
				if _, broken := fmt.Fprintf(out, "\\\\x%x\t%d\t%s\n", piece[:k], n, escape.Replace(owner)); broken != nil {
					err = broken
				}
			}
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		_ = out.CloseWithError(err)
	}()
	o, err := s.Store.Put(ctx, owner, object, in, as)
	_ = in.Close()
	if err == nil {
		o.Name, o.Size, o.Digest = name, size, hex.EncodeToString(sum.Sum(nil))
	}
	return o, err
}

func (s tabled) Open(ctx context.Context, owner, name string) (io.ReadCloser, error) {
	object, rows := s.where(owner, name)
	r, err := s.Store.Open(ctx, owner, object)
	if err != nil || !rows {
		return r, err
	}
	b := bufio.NewReader(r)
	_, err = b.ReadString('\n')
	return &pieces{Closer: r, b: b}, err
}

type pieces struct {
	io.Closer
	b    *bufio.Reader
	left []byte
}

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		line, err := p.b.ReadString('\n')
		if err != nil {
			return 0, err
		}
		data, _, _ := strings.Cut(line, "\t")
		if p.left, err = hex.DecodeString(strings.TrimPrefix(data, `\\x`)); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

func (s tabled) Digest(ctx context.Context, owner, name string) (string, error) {
	if object, rows := s.where(owner, name); !rows {
		return s.Store.Digest(ctx, owner, object)
	}
	digest, _, err := s.sum(ctx, owner, name)
	return digest, err
}

func (s tabled) sum(ctx context.Context, owner, name string) (string, int64, error) {
	r, err := s.Open(ctx, owner, name)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), n, errors.Join(err, r.Close())
}

func (s tabled) Remove(ctx context.Context, owner, name string, as objectstore.Mark) error {
	object, _ := s.where(owner, name)
	return s.Store.Remove(ctx, owner, object, as)
}

func (s tabled) List(ctx context.Context, owner string) (objectstore.Listing, error) {
	l, err := s.Store.List(ctx, owner)
	l.Bytes = 0
	for i := range l.Objects {
		o := &l.Objects[i]
		if t := s.byName[o.Name]; t != nil {
			var n int
			_, _ = fmt.Sscanf(t.label, "public.t%d", &n)
			o.Name = tabledNames[n]
			var gone error
			if _, o.Size, gone = s.sum(ctx, owner, o.Name); gone != nil && !errors.Is(gone, objectstore.ErrNoObject) && !errors.Is(gone, objectstore.ErrNoOwner) {
				err = gone
			}
		}
		l.Bytes += o.Size
	}
	slices.SortFunc(l.Objects, func(a, b objectstore.Object) int { return cmp.Compare(a.Name, b.Name) })
	return l, err
}
