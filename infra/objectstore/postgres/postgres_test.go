package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client is a plain SQL client of a database.
type client struct {
	*pgx.Conn
	t testing.TB
}

func connect(t testing.TB, url string) client {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	ok(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return client{c, t}
}

// run runs statements that must succeed.
func (c client) run(statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		if _, err := c.Exec(c.t.Context(), s); err != nil {
			c.t.Fatalf("%s: %v", s, err)
		}
	}
}

// one returns the only value of a query, as text.
func (c client) one(query string) string {
	c.t.Helper()
	var v *string
	if err := c.QueryRow(c.t.Context(), "SELECT ("+query+")::text").Scan(&v); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	if v == nil {
		return "NULL"
	}
	return *v
}

func open(t testing.TB, url string, tables ...Table) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: url, Tables: tables})
	ok(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
