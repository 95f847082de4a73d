package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"penstock/consumers/executor/mover/movertest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/postgres"
)

// tables are an application's. Posts refer to threads, which are made before.
const tables = `CREATE TABLE threads (owner text, id int, title text, PRIMARY KEY (owner, id));
	CREATE TABLE posts (owner text, n bigint, thread int, body text, PRIMARY KEY (owner, n),
		FOREIGN KEY (owner, thread) REFERENCES threads (owner, id))`

// The tables as objects: how a database gives them, and how other stores keep
// them.
const (
	threadsObject = "00.public.threads"
	postsObject   = "01.public.posts"
	threadsHeader = "penstock rows 1\tid\towner\ttitle\n"
	postsHeader   = "penstock rows 1\tbody\tn\towner\tthread\n"
)

func threadsOf(owner string) string {
	return threadsHeader + "0\t" + owner + "\tfirst\n1\t" + owner + "\tsecond\n"
}

func postLine(owner string, n uint64) string {
	return fmt.Sprintf("post %d\t%[1]d\t%s\t%d\n", n, owner, n%2)
}

// sqlPosts is an application that speaks SQL to a site's database, and knows
// nothing of Penstock but the error that says where the data went.
type sqlPosts struct{ *pgxpool.Pool }

// Write makes a post, and the threads if this is the owner's first.
func (c sqlPosts) Write(ctx context.Context, owner string, n uint64) error {
	err := pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		if n == 1 {
			_, err := tx.Exec(ctx, `INSERT INTO threads VALUES ($1, 0, 'first'), ($1, 1, 'second') ON CONFLICT DO NOTHING`, owner)
			if err != nil {
				return err
			}
		}
		// One that is there was written by a try of before.
		_, err := tx.Exec(ctx, `INSERT INTO posts VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, owner, int64(n), n%2, fmt.Sprint("post ", n))
		return err
	})
	if m, is := postgres.Moved(err); is {
		return movertest.Moved(&objectstore.MarkedError{Owner: owner, Have: m})
	}
	return err
}

// Read returns the numbers of the posts that say what they must and are in a
// thread.
func (c sqlPosts) Read(ctx context.Context, owner string) ([]uint64, error) {
	rows, err := c.Query(ctx, `SELECT p.n FROM posts p JOIN threads t ON t.owner = p.owner AND t.id = p.thread
		WHERE p.owner = $1 AND p.body = 'post ' || p.n ORDER BY p.n`, owner)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	out := make([]uint64, len(numbers))
	for i, n := range numbers {
		out[i] = uint64(n)
	}
	return out, err
}

// objectPosts is the same application at a site whose store is no database: it
// adds rows to the table as the object that it is there.
type objectPosts struct{ s objectstore.Store }

// Write makes a post, and the threads if this is the owner's first.
func (c objectPosts) Write(ctx context.Context, owner string, n uint64) error {
	// A copy that may not be written to may be a part of one: look before.
	m, err := c.s.Stat(ctx, owner)
	switch {
	case err != nil:
		return err
	case m.State == objectstore.Absent && n > 1:
		return fmt.Errorf("%s: %w", owner, objectstore.ErrNoOwner)
	case m.State != objectstore.Absent && !m.Writable():
		return movertest.Moved(&objectstore.MarkedError{Owner: owner, Have: m})
	}
	have, err := c.object(ctx, owner, postsObject)
	switch {
	case n == 1 && (errors.Is(err, objectstore.ErrNoObject) || errors.Is(err, objectstore.ErrNoOwner)):
		have = postsHeader
		if _, err := c.s.Put(ctx, owner, threadsObject, strings.NewReader(threadsOf(owner)), objectstore.Mark{}); err != nil {
			return movertest.Moved(err)
		}
	case err != nil:
		return err
	}
	if line := postLine(owner, n); !strings.HasSuffix(have, line) { // else it was written by a try of before
		have += line
	}
	_, err = c.s.Put(ctx, owner, postsObject, strings.NewReader(have), objectstore.Mark{})
	return movertest.Moved(err)
}

// Read returns the numbers of the posts that are as they must be.
func (c objectPosts) Read(ctx context.Context, owner string) ([]uint64, error) {
	threads, err := c.object(ctx, owner, threadsObject)
	if err != nil || threads != threadsOf(owner) {
		return nil, fmt.Errorf("threads are %q: %w", threads, err)
	}
	have, err := c.object(ctx, owner, postsObject)
	if err != nil {
		return nil, err
	}
	rows, ok := strings.CutPrefix(have, postsHeader)
	if !ok {
		return nil, fmt.Errorf("posts begin with %.80q", have)
	}
	var out []uint64
	for line := range strings.Lines(rows) {
		n, err := strconv.ParseUint(strings.Split(line, "\t")[1], 10, 64)
		if err != nil || line != postLine(owner, n) {
			return nil, fmt.Errorf("a post is %q", line)
		}
		out = append(out, n)
	}
	return out, nil
}

func (c objectPosts) object(ctx context.Context, owner, name string) (string, error) {
	r, err := c.s.Open(ctx, owner, name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}
