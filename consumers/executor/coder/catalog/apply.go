package catalog

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"penstock/consumers/executor/coder/object"
)

// trimMost is how many shipped changes one commit removes at most, so that no writer
// waits long when a store has been away.
const trimMost = 4096

// writing is a transaction that applies changes.
type writing struct {
	c       *Catalog
	tx      *bbolt.Tx
	seq     uint64
	stats   Stats
	bytes   int
	trimmed uint64
}

// apply makes the rows the next change: the one place where tables are written.
func (w *writing) apply(rows []Row) error {
	for _, r := range rows {
		if err := w.row(r); err != nil {
			return fmt.Errorf("%v: %w", r.Table, err)
		}
	}
	w.seq++
	if w.c.noLog {
		return nil
	}
	log := w.tx.Bucket(logBucket)
	log.FillPercent = 0.95 // it only grows at its end
	b := AppendChange(nil, Change{w.seq, rows})
	w.bytes += len(b)
	return log.Put(seqKey(w.seq), b)
}

// row writes one row, and keeps what follows from the rows: the stats, the places of open
// intents, and the documents that readers hold.
func (w *writing) row(r Row) error {
	b := w.tx.Bucket(r.Table.bucket())
	old := b.Get(r.Key)
	w.bytes += len(r.Key) + len(r.Value)
	if err := w.stats.count(r.Table, old, -1); err != nil {
		return err
	}
	if err := w.stats.count(r.Table, r.Value, 1); err != nil {
		return err
	}
	switch r.Table {
	case intents:
		if err := w.claim(string(r.Key), old, r.Value); err != nil {
			return err
		}
	case versions:
		if old != nil && r.Value == nil {
			w.c.holds.stash(string(r.Key), old, w.tx.Bucket(rests.bucket()).Get(r.Key), w.seq+1)
		}
	}
	if r.Value == nil {
		return b.Delete(r.Key)
	}
	return b.Put(r.Key, r.Value)
}

// claim keeps the places of open intents.
func (w *writing) claim(id string, old, value []byte) error {
	if w.c.claimed == nil {
		w.c.claimed = make(map[object.Place]string)
	}
	for i, v := range [...][]byte{old, value} {
		if v == nil {
			continue
		}
		intent, err := decodeIntent(id, v)
		if err != nil {
			return err
		}
		for _, p := range intent.Places {
			if i == 0 {
				delete(w.c.claimed, p)
			} else {
				w.c.claimed[p] = id
			}
		}
	}
	return nil
}

// finish removes what was shipped and writes the state.
func (w *writing) finish() error {
	w.trimmed = w.c.trimmed
	cursor := w.tx.Bucket(logBucket).Cursor()
	upTo := min(w.c.shipped.Load(), w.trimmed+trimMost)
	for w.trimmed < upTo {
		key, _ := cursor.Seek(seqKey(w.trimmed + 1))
		if key == nil || binary.BigEndian.Uint64(key) > upTo {
			w.trimmed = upTo
			break
		}
		w.trimmed = binary.BigEndian.Uint64(key)
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	return w.tx.Bucket(metaBucket).Put(stateKey, encodeState(w.seq, w.stats))
}

// publish shows a committed state to those who ask without a transaction.
func (c *Catalog) publish(seq uint64, stats Stats) {
	c.stats.Store(&stats)
	c.seq.Store(seq)
	c.holds.commit(seq)
	next := make(chan struct{})
	close(*c.news.Swap(&next))
}
