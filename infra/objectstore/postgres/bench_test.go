package postgres

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/testserver"
)

// large is an owner with 100,000 rows of about 150 bytes at a, and an empty copy
// to come at b.
func large(b *testing.B) (client, *Store, *Store) {
	b.Helper()
	var stores []*Store
	var clients []client
	for range 2 {
		url := testserver.Postgres(b)
		c := connect(b, url)
		c.run(`CREATE TABLE docs (owner text, id bigint, title text, body text, at timestamptz, size int, PRIMARY KEY (owner, id))`)
		stores, clients = append(stores, open(b, url, Table{"docs", "owner"})), append(clients, c)
	}
	clients[0].run(`INSERT INTO docs SELECT 'o', n, 'title ' || n, repeat(md5(n::text), 3), now(), n FROM generate_series(1, 100000) n`, `ANALYZE docs`)
	ok(b, stores[1].Mark(b.Context(), "o", objectstore.Mark{State: objectstore.Absent}, incoming))
	return clients[0], stores[0], stores[1]
}

const docs = "00.public.docs"

func transfer(b *testing.B, from, to *Store) int64 {
	b.Helper()
	r, err := from.Open(b.Context(), "o", docs)
	ok(b, err)
	o, err := to.Put(b.Context(), "o", docs, r, incoming)
	ok(b, errors.Join(err, r.Close()))
	return o.Size
}

// BenchmarkMove copies, as a mover does, an owner of 100,000 rows to an empty
// copy: list, send, write, read back.
func BenchmarkMove(b *testing.B) {
	_, from, to := large(b)
	for b.Loop() {
		l, err := from.List(b.Context(), "o")
		ok(b, err)
		b.SetBytes(transfer(b, from, to))
		_, err = to.Digest(b.Context(), "o", l.Objects[0].Name)
		ok(b, err)
		b.StopTimer()
		ok(b, to.Remove(b.Context(), "o", docs, incoming))
		b.StartTimer()
	}
}

// BenchmarkDifference brings the copy up to date after 100 rows of 100,000 were
// changed: what is done while writers are held, if they never pause.
func BenchmarkDifference(b *testing.B) {
	c, from, to := large(b)
	transfer(b, from, to)
	i := 0
	for b.Loop() {
		b.StopTimer()
		i++
		c.run(fmt.Sprintf(`UPDATE docs SET body = body || '.' WHERE owner = 'o' AND id %% 1000 = %d`, i%1000))
		b.StartTimer()
		_, err := from.List(b.Context(), "o")
		ok(b, err)
		b.SetBytes(transfer(b, from, to))
		_, err = to.Digest(b.Context(), "o", docs)
		ok(b, err)
	}
}

// BenchmarkParts are the steps of the two.
func BenchmarkParts(b *testing.B) {
	c, from, to := large(b)
	i := 0
	steps := []struct {
		name string
		do   func() error
	}{
		{"hold", func() error { h, err := from.Hold(b.Context(), "o", ""); h.Release(); return err }},
		{"list", func() error { _, err := from.List(b.Context(), "o"); return err }},
		{"list changed", func() error { clear(from.sizes); _, err := from.List(b.Context(), "o"); return err }},
		{"digest", func() error { _, err := from.Digest(b.Context(), "o", docs); return err }},
		{"read", func() error {
			r, err := from.Open(b.Context(), "o", docs)
			ok(b, err)
			_, err = io.Copy(io.Discard, r)
			return errors.Join(err, r.Close())
		}},
		{"write first", func() error {
			transfer(b, from, to)
			b.StopTimer()
			defer b.StartTimer()
			return to.Remove(b.Context(), "o", docs, incoming)
		}},
		{"write equal", func() error { transfer(b, from, to); return nil }},
		{"client inserts a row", func() error {
			i++
			_, err := c.Exec(b.Context(), `INSERT INTO docs (owner, id) VALUES ('p', $1)`, i)
			return err
		}},
		{"client inserts 10,000 rows", func() error {
			_, err := c.Exec(b.Context(), `INSERT INTO docs (owner, id) SELECT 'q', coalesce(max(id), 0) + generate_series(1, 10000) FROM docs WHERE owner = 'q'`)
			return err
		}},
	}
	for _, s := range steps {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ok(b, s.do())
			}
		})
	}
}
