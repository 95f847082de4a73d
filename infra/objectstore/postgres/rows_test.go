package postgres

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/testserver"
)

// shop is three tables that refer to each other, with a column of every kind that
// is hard to carry.
var shop = []string{
	`CREATE TYPE mood AS ENUM ('sad', 'glad')`,
	`CREATE DOMAIN code AS text CHECK (value ~ '^[a-z0-9-]+$')`,
	`CREATE TABLE users (
		tenant text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE,
		parent bigint REFERENCES users, profile jsonb, raw json, photo bytea, tags text[], grid int[][], born date,
		seen timestamptz, local timestamp, every interval, mood mood, moods mood[], balance numeric, score float8, single real,
		ok boolean, nick varchar(20), fixed char(10), addr inet, span int4range, spot point, doc xml, price money, code code,
		"Odd ""name""
" text, loud text GENERATED ALWAYS AS (upper(email)) STORED)`,
	`CREATE INDEX ON users (tenant)`,
	`CREATE TABLE orders (
		id uuid PRIMARY KEY, tenant text NOT NULL, user_id bigint NOT NULL REFERENCES users, at timestamptz DEFAULT now(), no serial)`,
	`CREATE INDEX ON orders (tenant)`,
	`CREATE TABLE items (
		order_id uuid REFERENCES orders, n int, tenant text NOT NULL, what text, PRIMARY KEY (order_id, n))`,
	`CREATE INDEX ON items (tenant)`,
}

var shopTables = []Table{{"items", "tenant"}, {"public.users", "tenant"}, {"orders", "tenant"}}

const (
	usersObject  = "00.public.users"
	ordersObject = "01.public.orders"
	itemsObject  = "02.public.items"
)

// newShop opens a site with the three tables.
func newShop(t testing.TB) (client, *Store) {
	t.Helper()
	url := testserver.Postgres(t)
	c := connect(t, url)
	c.run(shop...)
	return c, open(t, url, shopTables...)
}

// fill gives an owner rows full of values.
func fill(c client, owner string) {
	c.run(
		`INSERT INTO users (tenant, email, profile, raw, photo, tags, grid, born, seen, local, every, mood, moods, balance, score, single,
			ok, nick, fixed, addr, span, spot, doc, price, code, "Odd ""name""
") VALUES
		('`+owner+`', '`+owner+`1', '{"b": [1, null], "a": "\u00e4\t"}', '{ "b":1,  "b":2 }', '\x00ff5c0a', '{"a b",NULL,"c,\"d\\"}',
			'{{1,2},{3,4}}', '0044-03-15 BC', '2024-02-29 23:59:59.999999+05:30', 'infinity', '1 mon -3 days 04:05:06.7', 'glad',
			'{sad,glad}', 1.50, 0.1, 3.4028235e38, true, 'ünï', 'pad', '10.0.0.1/8', '[1,10)', '(0.1,-2)', '<a>&amp;</a>', 12.34, 'abc-1',
			E'tab\t, line\n, return\r, back\\slash, \\N, bell\b\f\v, end\\'),
		('`+owner+`', '`+owner+`2', 'null', 'null', '', '{}', '{}', 'infinity', '-infinity', NULL, '-1 year', 'sad', '{}', 'NaN', '-0', 'NaN',
			false, '', '', '::1', 'empty', NULL, NULL, -1, NULL, ''),
		('`+owner+`', '`+owner+`3', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
		`UPDATE users SET parent = (SELECT id FROM users WHERE email = '`+owner+`2') WHERE email = '`+owner+`1'`,
		`INSERT INTO orders (id, tenant, user_id) SELECT gen_random_uuid(), tenant, id FROM users WHERE tenant = '`+owner+`'`,
		`INSERT INTO items SELECT id, n, tenant, 'thing ' || n FROM orders, generate_series(1, 3) n WHERE tenant = '`+owner+`'`,
	)
}

var (
	free     objectstore.Mark
	incoming = objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "m"}
	live     = objectstore.Mark{State: objectstore.Live, Version: 1}
	retired  = objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "b"}
)

// carry makes the owner's copy at b what it is at a, object by object, as a mover
// does, and checks that it is equal.
func carry(t testing.TB, a, b *Store, owner string, as objectstore.Mark) {
	t.Helper()
	from, err := a.List(t.Context(), owner)
	ok(t, err)
	there, err := b.List(t.Context(), owner)
	ok(t, err)
	want := map[string]bool{}
	for _, o := range from.Objects {
		want[o.Name] = true
	}
	for _, o := range there.Objects {
		if !want[o.Name] {
			ok(t, b.Remove(t.Context(), owner, o.Name, as))
		}
	}
	for _, o := range from.Objects {
		r, err := a.Open(t.Context(), owner, o.Name)
		ok(t, err)
		put, err := b.Put(t.Context(), owner, o.Name, r, as)
		ok(t, errors.Join(err, r.Close()))
		if put.Size != o.Size {
			t.Errorf("%s: %d bytes were sent, the source listed %d", o.Name, put.Size, o.Size)
		}
	}
	equal(t, a, b, owner)
}

func equal(t testing.TB, a, b *Store, owner string) {
	t.Helper()
	la, err := a.List(t.Context(), owner)
	ok(t, err)
	lb, err := b.List(t.Context(), owner)
	ok(t, err)
	if len(la.Objects) != len(lb.Objects) || la.Bytes != lb.Bytes {
		t.Fatalf("one lists %+v, the other %+v", la, lb)
	}
	for _, o := range la.Objects {
		da, err := a.Digest(t.Context(), owner, o.Name)
		ok(t, err)
		db, err := b.Digest(t.Context(), owner, o.Name)
		ok(t, err)
		if da != db {
			t.Errorf("%s differs:\n%s\n%s", o.Name, content(t, a, owner, o.Name), content(t, b, owner, o.Name))
		}
	}
}

func content(t testing.TB, s *Store, owner, name string) string {
	t.Helper()
	r, err := s.Open(t.Context(), owner, name)
	ok(t, err)
	b, err := io.ReadAll(r)
	ok(t, errors.Join(err, r.Close()))
	return string(b)
}

// TestRoundTrip: values of every type arrive as they were, and go back; a table
// whose columns stand in another order, and whose server sorts otherwise, is the
// same table.
func TestRoundTrip(t *testing.T) {
	ca, a := newShop(t)
	fill(ca, "x")
	fill(ca, "other")
	urlB := testserver.Postgres(t)
	cb := connect(t, urlB)
	cb.run(shop...)
	// The owner column at the end, and one that is gone.
	cb.run(`ALTER TABLE items ADD gone int, DROP COLUMN tenant, ADD tenant text`, `ALTER TABLE items DROP gone, ALTER tenant SET NOT NULL`)
	b := open(t, urlB, shopTables...)
	ok(t, b.Mark(t.Context(), "x", objectstore.Mark{State: objectstore.Absent}, incoming))
	carry(t, a, b, "x", incoming)
	row := `SELECT string_agg(u::text, E'\n' ORDER BY id) FROM users u WHERE tenant = 'x'`
	if got, want := cb.one(row), ca.one(row); got != want {
		t.Errorf("rows arrived as\n%s\nwere\n%s", got, want)
	}
	if n := cb.one("SELECT count(*) FROM users WHERE tenant <> 'x'"); n != "0" {
		t.Errorf("%s rows of others came along", n)
	}
	// Sequences go on behind what arrived.
	ok(t, b.Mark(t.Context(), "x", incoming, live))
	cb.run(`INSERT INTO users (tenant, email) VALUES ('x', 'new')`,
		`INSERT INTO orders (id, tenant, user_id) SELECT gen_random_uuid(), tenant, id FROM users WHERE email = 'new'`)
	if id, no := cb.one("SELECT id FROM users WHERE email = 'new'"), cb.one("SELECT max(no) FROM orders"); id != "4" || no != "4" {
		t.Errorf("after rows up to 3, sequences yield %s and %s", id, no)
	}
	// And back, as a difference. The new row's number is another owner's there.
	ok(t, a.Mark(t.Context(), "x", free, incoming))
	r, err := b.Open(t.Context(), "x", usersObject)
	ok(t, err)
	if _, err = a.Put(t.Context(), "x", usersObject, r, incoming); !errors.Is(err, ErrTaken) {
		t.Errorf("a row with another owner's key was written: %v", err)
	}
	ok(t, r.Close())
	ok(t, a.Delete(t.Context(), "other", free))
	carry(t, b, a, "x", incoming)
}

// TestDifference: whatever changed at the source since the last copy, the
// destination becomes equal: deleted, changed and swapped rows, values of unique
// columns that go from row to row, rows that others refer to.
func TestDifference(t *testing.T) {
	ca, a := newShop(t)
	cb, b := newShop(t)
	fill(ca, "x")
	fill(cb, "elsewhere") // has ids of its own: they must not meet
	cb.run(`DELETE FROM items`, `DELETE FROM orders`, `DELETE FROM users`)
	ok(t, b.Mark(t.Context(), "x", objectstore.Mark{State: objectstore.Absent}, incoming))
	carry(t, a, b, "x", incoming)
	for _, change := range [][]string{
		{`DELETE FROM items WHERE n = 2`, `UPDATE items SET what = 'other' WHERE n = 1`},
		{`DELETE FROM items WHERE order_id = (SELECT id FROM orders WHERE no = 3)`, `DELETE FROM orders WHERE no = 3`, `DELETE FROM users WHERE email = 'x3'`},
		// A value of a unique column goes to a new row.
		{`UPDATE users SET email = 'old' WHERE email = 'x2'`, `INSERT INTO users (tenant, email) VALUES ('x', 'x2')`},
		// The row that had it goes.
		{
			`UPDATE users SET parent = NULL`, `UPDATE orders SET user_id = (SELECT id FROM users WHERE email = 'x1')`,
			`DELETE FROM users WHERE email = 'old'`, `INSERT INTO users (tenant, email, parent) SELECT 'x', 'old', id FROM users WHERE email = 'x2'`,
		},
		// What others refer to goes, and they refer to something new.
		{
			`INSERT INTO users (tenant, email) VALUES ('x', 'heir')`, `UPDATE orders SET user_id = (SELECT id FROM users WHERE email = 'heir')`,
			`DELETE FROM users WHERE email = 'x1'`,
		},
		{`UPDATE users SET score = '-0', balance = 1.500, raw = '{"b":1}', fixed = 'x' WHERE email = 'heir'`},
		{`UPDATE users SET score = '0', balance = 1.5, raw = '{"b": 1}', fixed = 'x  ' WHERE email = 'heir'`},
		{`DELETE FROM items`},
		{`DELETE FROM orders`},
		{`INSERT INTO orders (id, tenant, user_id) SELECT gen_random_uuid(), tenant, id FROM users`},
		{`DELETE FROM orders`, `DELETE FROM users`, `INSERT INTO users (tenant, email) VALUES ('x', 'last')`},
	} {
		ca.run(change...)
		carry(t, a, b, "x", incoming)
	}
	ok(t, b.Delete(t.Context(), "x", incoming))
	if n := cb.one("SELECT count(*) FROM users") + cb.one("SELECT count(*) FROM penstock.copies") + cb.one("SELECT count(*) FROM penstock.changes WHERE owner = 'x'"); n != "000" {
		t.Errorf("a deleted owner left rows: %s", n)
	}
}

// TestRemoveParents: objects may be removed in any order.
func TestRemoveParents(t *testing.T) {
	c, s := newShop(t)
	fill(c, "x")
	fill(c, "y")
	ok(t, s.Remove(t.Context(), "x", usersObject, free))
	l, err := s.List(t.Context(), "x")
	ok(t, err)
	if len(l.Objects) != 0 {
		t.Errorf("left are %+v", l.Objects)
	}
	if n := c.one("SELECT count(*) FROM items"); n != "9" {
		t.Errorf("%s items are left of another owner's 9", n)
	}
}

// TestRefusedRows: what isn't the owner's rows of this table changes nothing.
func TestRefusedRows(t *testing.T) {
	c, s := newShop(t)
	fill(c, "x")
	fill(c, "y")
	before := content(t, s, "x", itemsObject)
	id := c.one("SELECT min(id::text) FROM orders WHERE tenant = 'x'")
	put := func(owner, name, content string) error {
		_, err := s.Put(t.Context(), owner, name, strings.NewReader(content), free)
		return err
	}
	for _, bad := range []string{
		"", "nonsense", "penstock rows 2\tn\n", "penstock rows 1\tn\torder_id\ttenant\n", "penstock rows 1\tn\torder_id\ttenant\twhat\tmore\n",
		"penstock rows 1\tn\torder_id\ttenant\twhat\n1\t" + id + "\ty\tz\n",   // another's
		"penstock rows 1\tn\torder_id\ttenant\twhat\none\t" + id + "\tx\tz\n", // no number
		"penstock rows 1\tn\torder_id\ttenant\twhat\n1\t" + id + "\tx\n",      // too few
		"penstock rows 1\tn\torder_id\ttenant\twhat\n1\t" + id + "\t\\N\tz\n", // nobody's
	} {
		if err := put("x", itemsObject, bad); !errors.Is(err, ErrRows) {
			t.Errorf("%.60q: %v, want ErrRows", bad, err)
		}
	}
	// A key that another owner's row has.
	other := c.one("SELECT min(order_id::text) FROM items WHERE tenant = 'y'")
	err := put("x", itemsObject, "penstock rows 1\tn\torder_id\ttenant\twhat\n1\t"+other+"\tx\tz\n")
	if !errors.Is(err, ErrTaken) {
		t.Errorf("a key of another's: %v", err)
	}
	for _, name := range []string{"03.public.more", "00.public.items", "17.a.b"} {
		if err := put("x", name, "penstock rows 1\tn\n"); !errors.Is(err, objectstore.ErrName) {
			t.Errorf("a table that isn't here, %s: %v", name, err)
		}
	}
	if err := put("\xff", itemsObject, "x"); !errors.Is(err, objectstore.ErrName) {
		t.Errorf("an owner that has no rows: %v", err)
	}
	// A name that only looks like a table's is anybody's.
	for name, body := range map[string]string{"01.introduction.txt": "x", "2015.05.17": "", "10.0.0.1": "penstock row"} {
		if err := put("x", name, body); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := content(t, s, "x", name); got != body {
			t.Errorf("%s is %q", name, got)
		}
	}
	if after := content(t, s, "x", itemsObject); after != before {
		t.Errorf("refused rows changed\n%s\nto\n%s", before, after)
	}
}

// TestColumnAdded: a column that comes while the store is open is carried too,
// and makes another version.
func TestColumnAdded(t *testing.T) {
	c, s := newShop(t)
	fill(c, "x")
	before, err := s.List(t.Context(), "x")
	ok(t, err)
	c.run(`ALTER TABLE items ADD color text DEFAULT 'red'`)
	after, err := s.List(t.Context(), "x")
	ok(t, err)
	if before.Version == after.Version || !strings.Contains(content(t, s, "x", itemsObject), "red") {
		t.Error("a new column is not seen")
	}
}

// TestTables: what can't be moved is refused when the store is opened, and the
// error says what it is.
func TestTables(t *testing.T) {
	url := testserver.Postgres(t)
	c := connect(t, url)
	c.run(`CREATE TABLE a (id int PRIMARY KEY, b int, o text)`, `CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a, o text)`,
		`ALTER TABLE a ADD CONSTRAINT x FOREIGN KEY (b) REFERENCES b`, `CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES a, o text)`,
		`CREATE TABLE nokey (o text)`, `CREATE VIEW v AS SELECT * FROM a`, `CREATE TABLE dates (id int PRIMARY KEY, o date)`,
		`CREATE TABLE parent (id int PRIMARY KEY, o text)`, `CREATE TABLE heir () INHERITS (parent)`)
	for _, bad := range []struct {
		tables []Table
		want   string
	}{
		{[]Table{{"c", "o"}, {"a", "o"}, {"b", "o"}}, "public.a → public.b → public.a"},
		{[]Table{{"nokey", "o"}}, "no primary key"},
		{[]Table{{"v", "o"}}, "v is no table"},
		{[]Table{{"parent", "o"}}, "inherit"},
		{[]Table{{"dates", "o"}}, "of type date"},
		{[]Table{{"c", "nothing"}}, `no column "nothing"`},
		{[]Table{{"nowhere.c", "o"}}, "there is no nowhere.c"},
		{[]Table{{"c", "o"}, {"public.c", "o"}}, "twice"},
	} {
		s, err := Open(t.Context(), Options{URL: url, Tables: bad.tables})
		if s != nil || !errors.Is(err, ErrTables) || !strings.Contains(fmt.Sprint(err), bad.want) {
			t.Errorf("%v: %v, want that it says %q", bad.tables, err, bad.want)
		}
	}
	if c.one("SELECT to_regnamespace('penstock') IS NULL") != "true" {
		t.Error("refused tables left a schema")
	}
}
