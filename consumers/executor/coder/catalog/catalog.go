package catalog

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"penstock/consumers/executor/coder/field"
	"penstock/consumers/executor/coder/object"
)

// Options of Open.
type Options struct {
	// Coder is the coder's name; a catalog is of one coder for good.
	Coder string
	// Instance names the state in the stores' owner marker; it is kept when the
	// catalog is made. Defaults to a random one.
	Instance string
	// NoLog keeps no changes for a shipper: nobody ships them.
	NoLog bool
	// NoSync leaves writing to the system, so that a crash of the machine, not of
	// the process, may lose or damage the catalog. For tests.
	NoSync bool
}

// Identity is what the owner marker in the stores says.
type Identity struct {
	Coder, Instance string
	// Term is 1 for a fresh catalog and one more at each rebuild. The highest owns.
	Term uint32
}

const (
	fileFormat = 1
	fileMode   = 0o600
	// mapBytes is how much of the file is mapped from the start on: a file that
	// outgrows its mapping makes writers wait for all readers once.
	mapBytes = 1 << 30
	// lockPatience is how long Open waits for another process to let go.
	lockPatience = time.Millisecond
)

var identityKey, stateKey = []byte("identity"), []byte("state")

// Catalog is an open catalog.
type Catalog struct {
	db      *bbolt.DB
	id      Identity
	noLog   bool
	line    line
	holds   holds
	closing sync.Once
	closed  error
	stats   atomic.Pointer[Stats]
	seq     atomic.Uint64
	shipped atomic.Uint64
	news    atomic.Pointer[chan struct{}]
	// claimed are the places of open intents: the line's, as the transaction has it.
	claimed map[object.Place]string
	// trimmed is up to where the changes were removed from the file, the line's.
	trimmed uint64
}

// Open opens the catalog in a file, makes it if there is none, and queues for deletion
// what intents of a dead process name. It returns ErrLocked if another process has it
// open, ErrForeign if it is another coder's, ErrFormat if it is none, and ErrDamaged if
// parts of it are missing or are not what was written.
func Open(path string, o Options) (*Catalog, error) {
	if err := checkName("coder", o.Coder, maxName); err != nil {
		return nil, err
	}
	if o.Instance == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		o.Instance = hex.EncodeToString(b[:])
	}
	var c *Catalog
	err := guarded(path, func() (err error) {
		c, err = open(path, Identity{o.Coder, o.Instance, 1}, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.abandonAll(); err != nil {
		return nil, errors.Join(fmt.Errorf("catalog %s: intents of before: %w", path, err), c.Close())
	}
	return c, nil
}

// open opens or makes the file; a file that is there must be of id's coder.
func open(path string, id Identity, o Options) (*Catalog, error) {
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{
		Timeout: lockPatience, FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapBytes, NoStatistics: true,
		NoSync: o.NoSync, NoGrowSync: o.NoSync,
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("%w: %s: %w", ErrFormat, path, err)
	case err != nil:
		return nil, fmt.Errorf("catalog %s: %w", path, err)
	}
	if err := whole(db, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	c := &Catalog{db: db, noLog: o.NoLog, holds: newHolds()}
	news := make(chan struct{})
	c.news.Store(&news)
	if err := c.begin(id); err != nil {
		return nil, errors.Join(fmt.Errorf("catalog %s: %w", path, err), db.Close())
	}
	return c, nil
}

// guarded makes ErrDamaged of what a damaged file has the library do: it panics, or reads
// behind the end of the file. The file stays locked then, until the process ends.
func guarded(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %s: %v", ErrDamaged, path, fault)
		}
	}()
	return f()
}

// whole returns ErrDamaged for a file that has lost its end: it is shorter than what is in
// it. To read there would end the process.
func whole(db *bbolt.DB, path string) error {
	return db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("catalog: %w", err)
		}
		if need := tx.Size(); info.Size() < need {
			return fmt.Errorf("%w: %s: it has %d bytes, and there were %d", ErrDamaged, path, info.Size(), need)
		}
		return nil
	})
}

// begin reads the identity, or writes it into a fresh file, and the state.
func (c *Catalog) begin(id Identity) error {
	var known bool
	err := c.db.View(func(tx *bbolt.Tx) error {
		var err error
		known, err = c.recognise(tx, id.Coder)
		return err
	})
	if err != nil {
		return err
	}
	if !known {
		c.id = id
		if err := c.db.Update(c.found); err != nil {
			return err
		}
	} else if err := c.extend(); err != nil {
		return err
	}
	return c.reload()
}

// recognise reads whose catalog the file is; false means that it is empty.
func (c *Catalog) recognise(tx *bbolt.Tx, coder string) (bool, error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return false, fmt.Errorf("%w: another program's database", ErrFormat)
		}
		return false, nil
	}
	f := fieldsOf(meta.Get(identityKey))
	if format := f.Take("format", 1); f.Fault() == "" && format[0] != fileFormat {
		return false, fmt.Errorf("%w: %d", ErrFormat, format[0])
	}
	c.id = Identity{f.Text("coder", maxName), f.Text("instance", maxID), uint32(f.Number("term", 1<<32-1))} //nolint:gosec // bounded
	if err := f.end("identity"); err != nil {
		return false, err
	}
	if c.id.Coder != coder {
		return false, fmt.Errorf("%w: %s, not %s", ErrForeign, c.id.Coder, coder)
	}
	return true, nil
}

// found makes the tables of a fresh file.
func (c *Catalog) found(tx *bbolt.Tx) error {
	if err := checkName("instance", c.id.Instance, maxID); err != nil {
		return err
	}
	for t := buckets; t < tables; t++ {
		if _, err := tx.CreateBucket(t.bucket()); err != nil {
			return err
		}
	}
	if _, err := tx.CreateBucket(logBucket); err != nil {
		return err
	}
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	b := field.AppendText(field.AppendText([]byte{fileFormat}, c.id.Coder), c.id.Instance)
	if err := meta.Put(identityKey, appendNumber(b, c.id.Term)); err != nil {
		return err
	}
	return meta.Put(stateKey, encodeState(0, Stats{}))
}

// extend makes the table that files of before don't have.
func (c *Catalog) extend() error {
	there := false
	err := c.db.View(func(tx *bbolt.Tx) error {
		there = tx.Bucket(repeats.bucket()) != nil
		return nil
	})
	if err != nil || there {
		return err
	}
	return c.db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(repeats.bucket())
		return err
	})
}

// reload reads what is kept in memory of the state: at Open, and when a commit failed.
func (c *Catalog) reload() error {
	return c.db.View(func(tx *bbolt.Tx) error {
		for t := buckets; t < tables; t++ {
			if tx.Bucket(t.bucket()) == nil {
				return fmt.Errorf("%w: no table %v", ErrDamaged, t)
			}
		}
		seq, stats, err := decodeState(tx.Bucket(metaBucket).Get(stateKey))
		if err != nil {
			return err
		}
		c.trimmed = seq
		if first, _ := tx.Bucket(logBucket).Cursor().First(); first != nil {
			c.trimmed = binary.BigEndian.Uint64(first) - 1
		}
		c.shipped.Store(max(c.shipped.Load(), c.trimmed))
		c.claimed = make(map[object.Place]string)
		err = tx.Bucket(intents.bucket()).ForEach(func(id, value []byte) error {
			i, err := decodeIntent(string(id), value)
			for _, p := range i.Places {
				c.claimed[p] = i.ID
			}
			return err
		})
		c.publish(seq, stats)
		return err
	})
}

// Close waits for the transactions under way and closes the file. A second Close
// returns what the first did.
func (c *Catalog) Close() error {
	c.closing.Do(func() {
		c.line.close()
		c.closed = c.db.Close()
	})
	return c.closed
}

// Identity of the state.
func (c *Catalog) Identity() Identity { return c.id }

// Seq is the sequence number of the last change.
func (c *Catalog) Seq() uint64 { return c.seq.Load() }
