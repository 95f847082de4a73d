package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/objectstore"
	"penstock/infra/testserver"
)

// notes is a table with plain rows, and one of another type of owner.
var notes = []string{
	`CREATE TABLE notes (owner text, n bigint, body text, PRIMARY KEY (owner, n))`,
	`CREATE TABLE marks (owner text, n bigint, PRIMARY KEY (owner, n))`,
}

func newNotes(t testing.TB) (string, client, *Store) {
	t.Helper()
	url := testserver.Postgres(t)
	c := connect(t, url)
	c.run(notes...)
	return url, c, open(t, url, Table{"notes", "owner"}, Table{"marks", "owner"})
}

// refused fails unless an error says that the owner's copy may not be written to,
// and returns what it says the copy is.
func refused(t testing.TB, err error) objectstore.Mark {
	t.Helper()
	m, is := Moved(err)
	if !is {
		t.Fatalf("got %v, want that the write is refused", err)
	}
	return m
}

// TestFence: any client of the database is kept off a copy that may not be
// written to, by every kind of statement, and told where the data went.
func TestFence(t *testing.T) {
	_, c, s := newNotes(t)
	ctx := t.Context()
	c.run(`INSERT INTO notes VALUES ('o', 1, 'a'), ('free', 1, 'b'), (NULLIF('o', 'x'), 2, 'c')`)
	ok(t, s.Mark(ctx, "o", free, retired))
	for _, write := range []string{
		`INSERT INTO notes VALUES ('o', 3)`, `UPDATE notes SET body = 'x' WHERE owner = 'o'`, `DELETE FROM notes WHERE owner = 'o'`,
		`UPDATE notes SET owner = 'free', n = n + 10 WHERE owner = 'o'`, `UPDATE notes SET owner = 'o', n = 7 WHERE owner = 'free'`,
		`INSERT INTO notes VALUES ('free', 5), ('o', 5)`, `DELETE FROM notes`, `UPDATE notes SET n = n + 100`,
		`INSERT INTO notes VALUES ('o', 1) ON CONFLICT (owner, n) DO UPDATE SET body = 'x'`,
		`WITH w AS (INSERT INTO notes VALUES ('o', 9) RETURNING 1) SELECT * FROM w`, `INSERT INTO marks VALUES ('o', 1)`,
		`DO $$ BEGIN INSERT INTO notes VALUES ('o', 4); END $$`, `SET session_replication_role = replica; INSERT INTO notes VALUES ('o', 4)`,
	} {
		_, err := c.Conn.PgConn().Exec(ctx, write).ReadAll()
		if m := refused(t, err); m != retired {
			t.Errorf("%s: the copy is said to be %v", write, m)
		}
		if !strings.Contains(err.Error(), "moved to site b") {
			t.Errorf("the message is %v", err)
		}
		c.run("RESET session_replication_role")
	}
	_, err := c.Conn.PgConn().CopyFrom(ctx, strings.NewReader("o\t12\tx\n"), "COPY notes FROM STDIN")
	refused(t, err)
	c.run(`INSERT INTO notes VALUES ('free', 2)`, `UPDATE notes SET body = 'y' WHERE owner = 'free'`)
	ok(t, s.Mark(ctx, "o", retired, incoming))
	_, err = c.Exec(ctx, `INSERT INTO notes VALUES ('o', 3)`)
	if m := refused(t, err); m != incoming {
		t.Errorf("an incoming copy is said to be %v", m)
	}
	ok(t, s.Mark(ctx, "o", incoming, live))
	c.run(`INSERT INTO notes VALUES ('o', 3)`)
	// A pass is for one owner and one mark.
	ok(t, s.Mark(ctx, "o", live, retired))
	for _, p := range [][2]string{{"6f", `{"state":"retired","version":2,"site":"b"}`}, {"66", `{"state":"retired","version":1,"site":"b"}`}} {
		_, err = c.Conn.PgConn().Exec(ctx, fmt.Sprintf(`BEGIN; SET LOCAL penstock.owner = '%s'; SET LOCAL penstock.mark = '%s'; INSERT INTO notes VALUES ('o', 30)`, p[0], p[1])).ReadAll()
		refused(t, err)
		c.run("ROLLBACK")
	}
	if _, err = c.Exec(ctx, "TRUNCATE notes"); code(err) != Truncated {
		t.Errorf("a truncate: %v", err)
	}
}

// TestCounts: every committed change of an owner's rows changes its version, what
// was rolled back does not, and others' don't.
func TestCounts(t *testing.T) {
	url, c, s := newNotes(t)
	ctx := t.Context()
	seen := map[string]bool{}
	version := func() string {
		t.Helper()
		l, err := s.List(ctx, "o")
		ok(t, err)
		return l.Version
	}
	c.run(`INSERT INTO notes VALUES ('o', 1), ('p', 1), ('o', 2)`)
	seen[version()] = true
	d := connect(t, url)
	for i, change := range []string{
		`INSERT INTO notes VALUES ('o', 3)`, `UPDATE notes SET body = 'x' WHERE owner = 'o'`, `UPDATE notes SET body = 'x' WHERE owner = 'o'`,
		`UPDATE notes SET owner = 'p' WHERE owner = 'o' AND n = 3`, `UPDATE notes SET owner = 'o' WHERE owner = 'p' AND n = 3`,
		`DELETE FROM notes WHERE owner = 'o' AND n = 2`, `INSERT INTO marks VALUES ('o', 1)`,
		`BEGIN; INSERT INTO notes VALUES ('o', 4); SAVEPOINT s; INSERT INTO notes VALUES ('o', 5); ROLLBACK TO s; INSERT INTO marks VALUES ('o', 5); COMMIT`,
		`BEGIN; SAVEPOINT s; INSERT INTO notes VALUES ('o', 6); ROLLBACK TO s; INSERT INTO notes VALUES ('o', 7); COMMIT`,
		`BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO notes VALUES ('o', 8); COMMIT`,
		`BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE notes SET body = 'y' WHERE owner = 'o'; COMMIT`,
	} {
		// Another transaction is open on the same owner, and ends either way.
		if i%2 == 0 {
			d.run(fmt.Sprintf(`BEGIN; INSERT INTO notes VALUES ('o', %d)`, 100+i))
		}
		_, err := c.Conn.PgConn().Exec(ctx, change).ReadAll()
		ok(t, err)
		v := version()
		if seen[v] {
			t.Errorf("after %s the version is one of before", change)
		}
		seen[v] = true
		if i%2 == 0 {
			d.run([]string{"COMMIT", "ROLLBACK"}[i/2%2])
			if w := version(); (w == v) != (i/2%2 == 1) {
				t.Errorf("after another's commit or rollback beside %s the version changed or not", change)
			}
		}
		v = version()
		seen[v] = true
		c.run(`UPDATE notes SET body = 'z' WHERE owner = 'p'`, `BEGIN`, `DELETE FROM notes`, `ROLLBACK`)
		if version() != v {
			t.Errorf("after %s, another owner's change or one that was rolled back changes the version", change)
		}
	}
	// Counted in many slots, they are put together without another version.
	for i := range manySlots + 10 {
		c.run(fmt.Sprintf(`BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE notes SET body = '%d' WHERE owner = 'o' AND n = 1; COMMIT`, i))
	}
	v := version()
	if n := c.one("SELECT count(*) FROM penstock.changes WHERE owner = 'o' AND object = 'public.notes'"); n != "1" || version() != v {
		t.Errorf("changes are counted in %s slots; the version changed: %v", n, version() != v)
	}
}

// TestHoldWaitsForTransactions: a barrier comes when those who write have ended,
// and whoever begins then waits; a version that was read before they ended is not
// what is held.
func TestHoldWaitsForTransactions(t *testing.T) {
	url, c, s := newNotes(t)
	ctx := t.Context()
	c.run(`INSERT INTO notes VALUES ('o', 1)`, `BEGIN`, `INSERT INTO notes VALUES ('o', 2)`)
	l, err := s.List(ctx, "o")
	ok(t, err)
	type got struct {
		h   objectstore.Held
		err error
	}
	held := make(chan got)
	go func() {
		h, err := s.Hold(ctx, "o", l.Version)
		held <- got{h, err}
	}()
	await(t, c, `SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
	c.run("COMMIT")
	if g := <-held; !errors.Is(g.err, objectstore.ErrChanged) {
		t.Fatalf("held %v, %v, want that it has changed", g.h, g.err)
	}
	h, err := s.Hold(ctx, "o", "")
	ok(t, err)
	done := make(chan error, 1)
	d := connect(t, url)
	go func() {
		_, err := d.Exec(context.Background(), `INSERT INTO notes VALUES ('o', 3)`)
		done <- err
	}()
	await(t, c, `SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
	c.run(`INSERT INTO notes VALUES ('other', 1)`)
	ok(t, h.Mark(ctx, free, retired))
	// The fence is there while the barrier is: who comes now needn't wait.
	_, err = c.Exec(ctx, `INSERT INTO notes VALUES ('o', 4)`)
	refused(t, err)
	h.Release()
	refused(t, <-done)
	if n := c.one("SELECT count(*) FROM notes WHERE owner = 'o'"); n != "2" {
		t.Errorf("%s rows, want 2", n)
	}
}

// await waits until a query yields true.
func await(t testing.TB, c client, query string) {
	t.Helper()
	late := time.Now().Add(time.Minute)
	for c.one(query) != "true" {
		if time.Now().After(late) {
			t.Fatalf("never true: %s", query)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestFrozenTransactions: a transaction that sees the marks of when it began
// can't write to a copy that was closed since.
func TestFrozenTransactions(t *testing.T) {
	_, c, s := newNotes(t)
	c.run(`INSERT INTO notes VALUES ('known', 1), ('o', 1)`)
	ok(t, s.Mark(t.Context(), "known", free, live))
	n := 1
	for _, owner := range []string{"o", "known"} {
		for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
			n++
			insert := fmt.Sprintf(`INSERT INTO notes VALUES ('%s', %d)`, owner, n)
			have, err := s.Stat(t.Context(), owner)
			ok(t, err)
			c.run(`BEGIN ISOLATION LEVEL `+level, `SELECT count(*) FROM notes`)
			ok(t, s.Mark(t.Context(), owner, have, retired))
			_, err = c.Exec(t.Context(), insert)
			if code(err) != "40001" {
				t.Errorf("%s writes under an old mark of %s: %v", level, owner, err)
			}
			c.run("ROLLBACK", `BEGIN ISOLATION LEVEL `+level)
			_, err = c.Exec(t.Context(), insert)
			refused(t, err)
			c.run("ROLLBACK")
			ok(t, s.Mark(t.Context(), owner, retired, have))
			c.run(`BEGIN ISOLATION LEVEL `+level, insert, `COMMIT`)
		}
	}
}

// TestNoWriteLost: clients write to owners in one statement, in transactions, to
// one and to many owners at once, while the owners are held and fenced; what was
// acknowledged is there, and nothing comes after.
func TestNoWriteLost(t *testing.T) {
	url, c, s := newNotes(t)
	ctx := t.Context()
	const owners = 3
	name := func(o int) string { return fmt.Sprintf("o%d", o) }
	for o := range owners {
		c.run(fmt.Sprintf(`INSERT INTO notes VALUES ('%s', 0)`, name(o)))
	}
	var acked [owners]atomic.Int64
	var wg sync.WaitGroup
	ready := make(chan struct{}, 4)
	for w := range 4 {
		d := connect(t, url)
		wg.Go(func() {
			var closed [owners]bool
			under := sync.OnceFunc(func() { ready <- struct{}{} })
			defer under()
			for i := 0; closed != [owners]bool{true, true, true}; i++ {
				if i == 5 {
					under()
				}
				o := i % owners
				n := int64(w+1)*1_000_000 + int64(i)
				write := fmt.Sprintf(`INSERT INTO notes VALUES ('%s', %d)`, name(o), n)
				switch w {
				case 1: // in a transaction, with work between
					write = fmt.Sprintf(`BEGIN; UPDATE notes SET body = 'w' WHERE owner = '%[1]s' AND n = 0; INSERT INTO marks VALUES ('%[1]s', %[2]d); %[3]s; COMMIT`, name(o), n, write)
				case 2: // to very many owners, of which one is ours
					write = fmt.Sprintf(`BEGIN; INSERT INTO notes SELECT 'many' || g, %d FROM generate_series(1, 80) g; %s; COMMIT`, n, write)
				case 3:
					write = "BEGIN ISOLATION LEVEL REPEATABLE READ; " + write + "; COMMIT"
				}
				_, err := d.Conn.PgConn().Exec(context.Background(), write).ReadAll()
				if err != nil {
					_, _ = d.Exec(context.Background(), "ROLLBACK")
				}
				switch _, moved := Moved(err); {
				case err == nil:
					acked[o].Add(1)
				case moved:
					closed[o] = true
				case code(err) == "40001": // again
				default:
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	for range 4 {
		<-ready
	}
	for o := range owners {
		h, err := s.Hold(ctx, name(o), "")
		ok(t, err)
		held := c.one(fmt.Sprintf("SELECT count(*) FROM notes WHERE owner = '%s'", name(o)))
		n := acked[o].Load() // acknowledged to us before: there for sure
		ok(t, h.Mark(ctx, free, retired))
		h.Release()
		var there int64
		_, _ = fmt.Sscan(held, &there)
		if there < n+1 {
			t.Errorf("%d writes were acknowledged, %d are there when held", n, there-1)
		}
		defer func() {
			after := c.one(fmt.Sprintf("SELECT count(*) FROM notes WHERE owner = '%s'", name(o)))
			if after != held || fmt.Sprint(acked[o].Load()+1) != after {
				t.Errorf("%s rows when held, %s after, %d acknowledged", held, after, acked[o].Load())
			}
		}()
	}
	wg.Wait()
}

// TestHoldLost: the barrier goes with its session, and the mover notices before
// it fences.
func TestHoldLost(t *testing.T) {
	_, c, s := newNotes(t)
	ctx := t.Context()
	c.run(`INSERT INTO notes VALUES ('o', 1)`)
	h, err := s.Hold(ctx, "o", "")
	ok(t, err)
	c.run(fmt.Sprintf("SELECT pg_terminate_backend(%d)", h.(*held).conn.Conn().PgConn().PID()))
	c.run(`INSERT INTO notes VALUES ('o', 2)`)
	if err := h.Mark(ctx, free, retired); !errors.Is(err, objectstore.ErrHoldLost) {
		t.Errorf("a fence without a barrier: %v", err)
	}
	if err := h.Delete(ctx, free); !errors.Is(err, objectstore.ErrHoldLost) {
		t.Errorf("a deletion without a barrier: %v", err)
	}
	h.Release()
	if m, err := s.Stat(ctx, "o"); err != nil || m != free {
		t.Errorf("the copy is %v, %v", m, err)
	}
	// All connections are lost, and come back.
	c.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()`)
	late := time.Now().Add(time.Minute)
	for {
		l, err := s.List(ctx, "o")
		if err == nil && len(l.Objects) == 1 {
			break
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
	// One that is cut off while it is being read.
	c.run(`INSERT INTO notes SELECT 'o', n, repeat('x', 1000) FROM generate_series(10, 10000) n`)
	r, err := s.Open(ctx, "o", "01.public.notes")
	ok(t, err)
	c.run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()`)
	buf := make([]byte, 1<<16)
	for err == nil {
		_, err = r.Read(buf)
	}
	if code(err) != "57P01" {
		t.Errorf("an object that broke off ends with %v", err)
	}
	ok(t, r.Close())
}

// TestUninstall: an operator gets out, unless something would be lost.
func TestUninstall(t *testing.T) {
	url, c, s := newNotes(t)
	c.run(`INSERT INTO notes VALUES ('o', 1)`)
	ok(t, s.Mark(t.Context(), "o", free, retired))
	if err := Uninstall(t.Context(), url, "", false); !errors.Is(err, ErrInUse) {
		t.Errorf("with a retired copy: %v", err)
	}
	ok(t, s.Mark(t.Context(), "o", retired, live))
	// Of a copy that has gone nothing would be lost but the notice.
	c.run(`INSERT INTO notes VALUES ('p', 1)`)
	ok(t, s.Mark(t.Context(), "p", free, retired))
	ok(t, s.Delete(t.Context(), "p", retired))
	ok(t, Uninstall(t.Context(), url, "", false))
	c.run(`INSERT INTO notes VALUES ('o', 2), ('p', 2)`, `TRUNCATE notes`)
	if n := c.one("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'penstock%'") + c.one("SELECT count(*) FROM pg_namespace WHERE nspname = 'penstock'"); n != "00" {
		t.Errorf("triggers and schemas left: %s", n)
	}
	ok(t, Uninstall(t.Context(), url, "", false))
}

// TestPartitions: rows are fenced whichever way they are written.
func TestPartitions(t *testing.T) {
	url := testserver.Postgres(t)
	c := connect(t, url)
	c.run(`CREATE TABLE logs (owner uuid, n int, day date, PRIMARY KEY (owner, n, day)) PARTITION BY RANGE (day)`,
		`CREATE TABLE logs_old PARTITION OF logs FOR VALUES FROM (MINVALUE) TO ('2020-01-01')`,
		`CREATE TABLE logs_new PARTITION OF logs FOR VALUES FROM ('2020-01-01') TO (MAXVALUE)`)
	s := open(t, url, Table{"logs", "owner"})
	const o = "00000000-0000-0000-0000-00000000000a"
	c.run(`INSERT INTO logs SELECT '` + o + `', n, '2019-12-01'::date + n FROM generate_series(1, 60) n`)
	ok(t, s.Mark(t.Context(), o, free, retired))
	for _, write := range []string{
		`INSERT INTO logs VALUES ('` + o + `', 99, '2020-02-02')`, `INSERT INTO logs_old VALUES ('` + o + `', 99, '2019-02-02')`,
		`UPDATE logs SET day = '2021-01-01' WHERE n = 1`, `DELETE FROM logs_new`, `DELETE FROM logs`,
	} {
		_, err := c.Exec(t.Context(), write)
		refused(t, err)
	}
	if _, err := c.Exec(t.Context(), `TRUNCATE logs_new`); code(err) != Truncated {
		t.Errorf("a partition truncated: %v", err)
	}
	other := testserver.Postgres(t)
	connect(t, other).run(`CREATE TABLE logs (owner uuid, n int, day date, PRIMARY KEY (owner, n, day))`)
	b := open(t, other, Table{"logs", "owner"})
	ok(t, b.Mark(t.Context(), o, objectstore.Mark{State: objectstore.Absent}, incoming))
	carry(t, s, b, o, incoming)
	ok(t, s.Delete(t.Context(), o, retired))
	if n := c.one("SELECT count(*) FROM logs"); n != "0" {
		t.Errorf("%s rows are left", n)
	}
}

// TestOwners: each owner once, whatever tables it has rows in, over many pages.
func TestOwners(t *testing.T) {
	url := testserver.Postgres(t)
	c := connect(t, url)
	c.run(notes...)
	c.run(`CREATE TABLE numbers (id int PRIMARY KEY, who int)`, `CREATE INDEX ON numbers (who)`)
	s := open(t, url, Table{"notes", "owner"}, Table{"marks", "owner"}, Table{"numbers", "who"})
	c.run(`INSERT INTO notes SELECT o::text, n FROM generate_series(1, 1200) o, generate_series(1, 3) n`,
		`INSERT INTO marks SELECT o::text, 1 FROM generate_series(1100, 1800) o`, `INSERT INTO marks VALUES ('a''b\', 1)`,
		`INSERT INTO numbers SELECT o, o FROM generate_series(1700, 1900) o`, `INSERT INTO numbers VALUES (0, NULL)`)
	ok(t, s.Mark(t.Context(), "1850", free, live))
	ok(t, s.Mark(t.Context(), "gone", objectstore.Mark{State: objectstore.Absent}, incoming))
	_, err := s.Put(t.Context(), "1899", "loose", strings.NewReader("x"), free)
	ok(t, err)
	seen := map[string]objectstore.Mark{}
	ok(t, s.Owners(t.Context(), func(owner string, m objectstore.Mark) error {
		if _, twice := seen[owner]; twice {
			t.Errorf("%q twice", owner)
		}
		seen[owner] = m
		return nil
	}))
	if len(seen) != 1900+2 || seen["1850"] != live || seen["gone"] != incoming || seen["7"] != free {
		t.Errorf("%d owners, 1850 is %v, gone is %v", len(seen), seen["1850"], seen["gone"])
	}
	if _, there := seen[`a'b\`]; !there {
		t.Error(`a'b\ is missing`)
	}
}
