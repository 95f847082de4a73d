package postgres

import (
	"errors"
	"io"
	"strings"
	"testing"

	"penstock/infra/objectstore"
)

// TestFenceOutlivesTheCopy: a client who has not heard is sent after the data when
// the copy that moved has been deleted, too, until one comes back.
func TestFenceOutlivesTheCopy(t *testing.T) {
	url, c, s := newNotes(t)
	ctx := t.Context()
	c.run(`INSERT INTO notes VALUES ('o', 1, 'a')`)
	stale := connect(t, url)
	stale.run(`BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT count(*) FROM notes`)
	ok(t, s.Mark(ctx, "o", free, retired))
	ok(t, s.Delete(ctx, "o", retired))
	if _, err := stale.Exec(ctx, `INSERT INTO notes VALUES ('o', 2)`); code(err) != "40001" {
		t.Errorf("a transaction that still sees the copy: %v", err)
	}
	stale.run(`ROLLBACK`)
	for _, client := range []client{c, stale} {
		_, err := client.Exec(ctx, `INSERT INTO notes VALUES ('o', 2)`)
		if m := refused(t, err); m != retired {
			t.Errorf("the deleted copy is said to be %v", m)
		}
	}
	// To everybody else it is none.
	if m, err := s.Stat(ctx, "o"); err != nil || m.State != objectstore.Absent {
		t.Errorf("the deleted copy is %v, %v", m, err)
	}
	ok(t, s.Owners(ctx, func(owner string, m objectstore.Mark) error {
		t.Errorf("owner %q is listed as %v", owner, m)
		return nil
	}))
	if n := c.one("SELECT count(*) FROM penstock.overview"); n != "0" {
		t.Errorf("%s rows of the overview", n)
	}
	// A move back that is given up, by one mover or by two, leaves it as it was.
	absent := objectstore.Mark{State: objectstore.Absent}
	ok(t, s.Mark(ctx, "o", absent, incoming))
	second := objectstore.Mark{State: objectstore.Incoming, Version: 2, By: "n"}
	ok(t, s.Mark(ctx, "o", incoming, second))
	_, err := c.Exec(ctx, `INSERT INTO notes VALUES ('o', 2)`)
	if m := refused(t, err); m != second {
		t.Errorf("the incoming copy is said to be %v", m)
	}
	ok(t, s.Delete(ctx, "o", second))
	_, err = c.Exec(ctx, `INSERT INTO notes VALUES ('o', 2)`)
	if m := refused(t, err); m != retired {
		t.Errorf("after a return that was given up it is said to be %v", m)
	}
	if m, err := s.Stat(ctx, "o"); err != nil || m.State != objectstore.Absent {
		t.Errorf("after a return that was given up it is %v, %v", m, err)
	}
	ok(t, s.Mark(ctx, "o", absent, incoming))
	ok(t, s.Mark(ctx, "o", incoming, live))
	c.run(`INSERT INTO notes VALUES ('o', 3)`)
	// So does one that took over a copy that was to be deleted.
	ok(t, s.Mark(ctx, "o", live, retired))
	ok(t, s.Mark(ctx, "o", retired, second))
	ok(t, s.Delete(ctx, "o", second))
	_, err = c.Exec(ctx, `INSERT INTO notes VALUES ('o', 2)`)
	if m := refused(t, err); m != retired {
		t.Errorf("after a return to a retired copy that was given up it is said to be %v", m)
	}
	// Who makes a copy through the Store knows what he does.
	ok(t, s.Create(ctx, "o", free))
	c.run(`INSERT INTO notes VALUES ('o', 3)`)
	ok(t, s.Mark(ctx, "o", free, live))
	// A copy that was deleted where it was live, nobody moved. Nor one that never
	// arrived.
	ok(t, s.Delete(ctx, "o", live))
	c.run(`INSERT INTO notes VALUES ('o', 4)`)
	ok(t, s.Mark(ctx, "new", absent, incoming))
	ok(t, s.Delete(ctx, "new", incoming))
	c.run(`INSERT INTO notes VALUES ('new', 1)`)
}

// TestMovedMeanwhile: a Put that began before its copy was moved away, and ends
// after that copy was deleted, does not begin another one.
func TestMovedMeanwhile(t *testing.T) {
	_, c, s := newNotes(t)
	ctx := t.Context()
	for name, content := range map[string]string{"blob": "content", s.tables[0].object: magic + "\tn\towner\n"} {
		c.run(`INSERT INTO notes VALUES ('o', 1, 'a')`)
		in, out := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := s.Put(ctx, "o", name, in, objectstore.Mark{})
			done <- err
		}()
		_, err := io.WriteString(out, content) // when it is read, the Put has begun
		ok(t, err)
		ok(t, s.Mark(ctx, "o", free, retired))
		ok(t, s.Delete(ctx, "o", retired))
		ok(t, out.Close())
		var marked *objectstore.MarkedError
		if err := <-done; !errors.As(err, &marked) || marked.Have != retired {
			t.Errorf("%s: %v", name, err)
		}
		if m, err := s.Stat(ctx, "o"); err != nil || m.State != objectstore.Absent {
			t.Errorf("%s: the deleted copy is %v, %v", name, m, err)
		}
		// A Put that begins now may: who calls it knows of locations.
		_, err = s.Put(ctx, "o", "new", strings.NewReader(""), objectstore.Mark{})
		ok(t, err)
		ok(t, s.Delete(ctx, "o", free))
	}
}
