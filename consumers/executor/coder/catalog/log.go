package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// Batch is changes on end, as AppendChange encodes them.
type Batch struct {
	// First and Last are their sequence numbers. Last is First−1 if there are none.
	First, Last uint64
	Changes     []byte
}

// ReadLog gives the changes after a sequence number that have committed, as many as fit in
// most bytes and at least one if there is one. Those that Shipped was told of may be gone:
// then it returns ErrTrimmed.
func (c *Catalog) ReadLog(after uint64, most int) (b Batch, err error) {
	err = c.read(func(v *view) error {
		b = Batch{First: after + 1, Last: after}
		cursor := v.tx.Bucket(logBucket).Cursor()
		for key, value := cursor.Seek(seqKey(after + 1)); key != nil; key, value = cursor.Next() {
			if seq := binary.BigEndian.Uint64(key); seq != b.Last+1 {
				return fmt.Errorf("%w: %d", ErrTrimmed, b.Last+1)
			}
			if len(b.Changes) > 0 && len(b.Changes)+len(value) > most {
				return nil
			}
			b.Changes = append(b.Changes, value...)
			b.Last++
		}
		seq, _, err := decodeState(v.tx.Bucket(metaBucket).Get(stateKey))
		if err == nil && b.Last != seq {
			err = fmt.Errorf("%w: %d", ErrTrimmed, b.Last+1)
		}
		return err
	})
	return b, err
}

// Shipped says that all changes up to a sequence number are safe elsewhere. They are
// removed from the file by the commits that follow; a process that dies before ships some
// of them again, which is harmless.
func (c *Catalog) Shipped(seq uint64) {
	for {
		old := c.shipped.Load()
		if seq <= old || c.shipped.CompareAndSwap(old, seq) {
			return
		}
	}
}

// ShippedSeq is what Shipped was told last, or what the file had at Open.
func (c *Catalog) ShippedSeq() uint64 { return c.shipped.Load() }

// News gives a channel that the next commit closes. Ask for it before looking at Seq.
func (c *Catalog) News() <-chan struct{} { return *c.news.Load() }

// Spot is where a Scan goes on. The zero Spot is the beginning.
type Spot struct {
	Table Table
	Key   []byte // of the last row that was read
}

// Scan reads rows from a spot on, about most bytes of them, as AppendRow encodes them, and
// says at which sequence number they were so. Each call is a short transaction of its own:
// rows of several calls are of several states. They are one state when all changes
// from the first call's number on are applied to them, at least up to the last call's.
func (c *Catalog) Scan(from Spot, most int) (rows []byte, next Spot, end bool, seq uint64, err error) {
	err = c.read(func(v *view) error {
		rows, next, end = nil, from, false
		var err error
		if seq, _, err = decodeState(v.tx.Bucket(metaBucket).Get(stateKey)); err != nil {
			return err
		}
		for t := max(from.Table, buckets); t < tables; t++ {
			cursor := v.cursor(t)
			var key, value []byte
			if t == from.Table {
				if key, value = cursor.Seek(from.Key); bytes.Equal(key, from.Key) {
					key, value = cursor.Next()
				}
			} else {
				key, value = cursor.First()
			}
			for ; key != nil; key, value = cursor.Next() {
				rows = AppendRow(rows, Row{t, key, value})
				if len(rows) >= most {
					next = Spot{t, bytes.Clone(key)}
					return nil
				}
			}
		}
		end = true
		return nil
	})
	return rows, next, end, seq, err
}

// Restorer builds a catalog from rows and changes that were shipped.
type Restorer struct {
	c   *Catalog
	seq uint64
}

// Restore makes a file for a restored catalog. There must be none.
func Restore(path string, id Identity, o Options) (*Restorer, error) {
	// No sync until the end: a file that isn't whole is thrown away.
	o.NoSync, o.NoLog = true, true
	c, err := open(path, id, o)
	if err != nil {
		return nil, err
	}
	if c.Seq() != 0 || *c.stats.Load() != (Stats{}) {
		return nil, errors.Join(fmt.Errorf("%w: %s is there", ErrTaken, path), c.Close())
	}
	return &Restorer{c: c}, nil
}

// Rows applies rows of a snapshot, in one transaction.
func (r *Restorer) Rows(rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	return r.apply(r.seq, rows)
}

// From says that the rows so far are a snapshot that lacks nothing but the changes
// after seq.
func (r *Restorer) From(seq uint64) error { return r.apply(seq, nil) }

// Changes applies changes that follow on what was applied, in one transaction. It
// returns ErrTrimmed for a gap, and passes over changes that were applied before.
func (r *Restorer) Changes(list []Change) error {
	var rows []Row
	seq := r.seq
	for _, change := range list {
		if change.Seq <= seq {
			continue
		}
		if change.Seq != seq+1 {
			return fmt.Errorf("%w: %d", ErrTrimmed, seq+1)
		}
		rows, seq = append(rows, change.Rows...), change.Seq
	}
	return r.apply(seq, rows)
}

// Seq is that of the last change that was applied.
func (r *Restorer) Seq() uint64 { return r.seq }

func (r *Restorer) apply(seq uint64, rows []Row) error {
	var stats Stats
	err := r.c.db.Update(func(tx *bbolt.Tx) error {
		w := &writing{c: r.c, tx: tx, stats: *r.c.stats.Load()}
		for _, row := range rows {
			if row.Table == 0 || row.Table >= tables {
				return fmt.Errorf("%w: %v", ErrFormat, row.Table)
			}
			if err := w.row(row); err != nil {
				return fmt.Errorf("%v: %w", row.Table, err)
			}
		}
		w.seq, stats = seq, w.stats
		return w.finish()
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	r.seq = seq
	r.c.publish(seq, stats)
	return nil
}

// Close syncs the file and closes it. Open continues it.
func (r *Restorer) Close() error { return errors.Join(r.c.db.Sync(), r.c.Close()) }
