package movertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/postgres"
	"penstock/infra/testserver"
)

// postgresSite is a database with two tables, of which one refers to the other.
func postgresSite(t *testing.T) (*postgres.Store, *pgx.Conn) {
	t.Helper()
	url := testserver.Postgres(t)
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	_, err = c.Exec(t.Context(), `CREATE TABLE threads (owner text, id int, last int, PRIMARY KEY (owner, id));
		CREATE TABLE posts (owner text, n int, thread int, body text, PRIMARY KEY (owner, n),
			FOREIGN KEY (owner, thread) REFERENCES threads (owner, id))`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), postgres.Options{
		URL: url, Tables: []postgres.Table{{Name: "posts", Owner: "owner"}, {Name: "threads", Owner: "owner"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, c
}

// sqlClient is an application that speaks SQL and knows nothing of Penstock but
// the error that says where the data went.
type sqlClient struct {
	*pgx.Conn
	// pace is of all sites. What is moved is all posts, and where each move takes
	// longer than the one before, more are written before the next.
	pace *time.Ticker
}

// Write makes a post in a thread, which every seventh post begins, in one
// transaction.
func (c sqlClient) Write(ctx context.Context, owner string, n uint64) error {
	<-c.pace.C
	err := pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO threads VALUES ($1, $2, $3) ON CONFLICT (owner, id) DO UPDATE SET last = excluded.last`, owner, n/7, n)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO posts VALUES ($1, $2, $3, $4)`, owner, n, n/7, fmt.Sprint("post ", n))
		return err
	})
	if m, is := postgres.Moved(err); is {
		if m.State == objectstore.Retired {
			return &MovedError{Site: m.Site}
		}
		return &MovedError{}
	}
	return err
}

// Read returns the posts whose threads know of them.
func (c sqlClient) Read(ctx context.Context, owner string) ([]uint64, error) {
	rows, err := c.Query(ctx, `SELECT p.n FROM posts p JOIN threads t ON t.owner = p.owner AND t.id = p.thread AND t.last >= p.n
		WHERE p.owner = $1 ORDER BY p.n`, owner)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	out := make([]uint64, len(numbers))
	for i, n := range numbers {
		out[i] = uint64(n)
	}
	return out, errors.Join(err, rows.Err())
}

// TestPostgres: the writer is a plain SQL client, which the triggers fence.
func TestPostgres(t *testing.T) {
	stores := map[string]objectstore.Store{}
	clients := map[string]Writer{}
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for _, site := range []string{"a", "b", "c"} {
		s, c := postgresSite(t)
		stores[site], clients[site] = s, sqlClient{c, pace}
	}
	Run(t, stores, func(site string, _ objectstore.Store) Writer { return clients[site] })
}
