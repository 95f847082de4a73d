package shipping

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

// RebuildOptions of Rebuild.
type RebuildOptions struct {
	Coder string
	// Instance names the new state. Defaults to a random one.
	Instance string
	// Need is the shipper's.
	Need int
	// Partial takes what there is up to the first change that is missing or damaged:
	// what comes after it is lost, and told.
	Partial bool
	// Path is of the file that is made. There must be none.
	Path string
	// Patience is how long one request to a store may take. Defaults to 30 s.
	Patience time.Duration
	Stores   []chunks.Store
}

// Report says what Rebuild found.
type Report struct {
	// Identity is the new state's.
	Identity catalog.Identity
	// From is the snapshot that was read, 0 for none, Seq the last change. Rows and
	// Changes count what was applied.
	From, Seq     uint64
	Rows, Changes uint64
	// Torn are blobs that were damaged in some store, Silent the stores that didn't
	// answer, Others the keys that are no names of ours.
	Torn, Silent []string
	Others       int
	// Lost is the first change that is missing although later ones are there, with
	// Partial; else 0.
	Lost uint64
}

// Rebuild makes a catalog of what was shipped to the stores and takes them over, so that the
// instance that had them stops. The file is there when it returns nil and not before;
// Open, and Claim before anything else, continue it. It takes the stores only when what
// they have is found to be whole: after ErrGap, ErrTorn and ErrStores the old instance
// goes on, but where the error says otherwise. ErrOwned means that another took the
// stores meanwhile.
func Rebuild(ctx context.Context, o RebuildOptions) (Report, error) {
	o.Need, o.Patience = cmp.Or(o.Need, 1), cmp.Or(o.Patience, 30*time.Second)
	if err := checkStores(o.Coder, o.Stores, o.Need); err != nil {
		return Report{}, err
	}
	if o.Instance == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		o.Instance = hex.EncodeToString(b[:])
	}
	if _, err := os.Stat(o.Path); !errors.Is(err, os.ErrNotExist) {
		return Report{}, fmt.Errorf("rebuild: %s is there: %w", o.Path, cmp.Or(err, os.ErrExist))
	}
	draft := o.Path + ".rebuilding"
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, fmt.Errorf("rebuild: %w", err)
	}
	r := &rebuilder{o: o}
	err := r.run(ctx, draft)
	if err == nil {
		err = publish(draft, o.Path)
	}
	if err != nil {
		_ = os.Remove(draft) // the next rebuild removes it otherwise
		return r.report, fmt.Errorf("rebuild: %w", err)
	}
	return r.report, nil
}

// publish gives the file its name for good.
func publish(draft, path string) error {
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

type rebuilder struct {
	o      RebuildOptions
	report Report
	term   uint32 // whose log is read
	log    library
	file   *catalog.Restorer
}

func (r *rebuilder) run(ctx context.Context, draft string) (err error) {
	newest, err := r.survey(ctx)
	if err != nil {
		return err
	}
	if newest == 0 {
		return fmt.Errorf("%w: %s", ErrNoLog, r.o.Coder)
	}
	r.report.Identity = catalog.Identity{Coder: r.o.Coder, Instance: r.o.Instance, Term: newest + 1}
	r.file, err = catalog.Restore(draft, r.report.Identity, catalog.Options{Coder: r.o.Coder})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	if err := r.snapshot(ctx); err != nil {
		return err
	}
	if err := r.changes(ctx); err != nil {
		return err
	}
	// All is found to be whole: now the stores change hands. What the other instance
	// shipped up to then is read too.
	if err := mark(ctx, r.o.Stores, r.o.Need, r.o.Patience, r.report.Identity, nil); err != nil {
		return fmt.Errorf("take the stores over: %w", err)
	}
	if _, err := r.survey(ctx); err != nil {
		return fmt.Errorf("the stores are taken over: %w", err)
	}
	if err := r.changes(ctx); err != nil {
		return fmt.Errorf("the stores are taken over: %w", err)
	}
	r.report.Seq = r.file.Seq()
	return nil
}

// survey lists the stores, and gives the newest term of which there is any sign.
func (r *rebuilder) survey(ctx context.Context) (newest uint32, err error) {
	type found struct {
		names  []name
		others int
		marker catalog.Identity
	}
	list := ask(ctx, r.o.Stores, r.o.Patience, func(ctx context.Context, s chunks.Store) (f found, err error) {
		if f.marker, err = owner(ctx, s, r.o.Coder); err == nil {
			f.names, f.others, err = listing(ctx, s, r.o.Coder)
		}
		return f, err
	})
	if err := quorum(list, r.o.Need); err != nil {
		return 0, err
	}
	r.report.Silent, r.report.Others = nil, 0
	r.log = library{coder: r.o.Coder, patience: r.o.Patience, torn: r.log.torn}
	for _, a := range list {
		if a.err != nil {
			r.report.Silent = append(r.report.Silent, a.store.Name())
			continue
		}
		r.report.Others += a.value.others
		newest = max(newest, a.value.marker.Term)
		for _, n := range a.value.names {
			newest = max(newest, n.term)
		}
		r.log.add(a.store, a.value.names)
	}
	r.log.open(r.term)
	return newest, nil
}

// snapshot reads the newest whole snapshot of the newest term that has one; an older one of
// the same term does as well, if the changes since then are there. Term 1 began with
// nothing and needs none. Snapshots of earlier terms are of the past.
func (r *rebuilder) snapshot(ctx context.Context) error {
	list := r.log.snapshots()
	r.term = 1
	if len(list) > 0 {
		r.term = list[0].term
	}
	r.log.open(r.term)
	var failed []error
	for _, n := range list {
		if n.term != r.term {
			break
		}
		err := r.read(ctx, n)
		if err == nil || !errors.Is(err, ErrTorn) || r.report.Rows > 0 {
			return err
		}
		failed = append(failed, err)
	}
	if r.term == 1 && (len(failed) == 0 || r.log.begins()) {
		return nil
	}
	return errors.Join(failed...)
}

// read reads a snapshot.
func (r *rebuilder) read(ctx context.Context, n name) error {
	whole, err := r.log.blob(ctx, n, nil)
	if err != nil {
		return err
	}
	parts := whole.numbers[2]
	if uint64(len(whole.body)) != parts*sumBytes || whole.numbers[0] != n.first {
		return fmt.Errorf("%w: %s: %d parts", ErrTorn, n.key(r.o.Coder), parts)
	}
	for part := range parts {
		sum := whole.body[part*sumBytes : (part+1)*sumBytes]
		p := name{kind: kindPart, term: n.term, first: n.first, part: part}
		b, err := r.log.blob(ctx, p, sum)
		if err != nil {
			return err
		}
		rows, err := b.rows(p.key(r.o.Coder))
		if err != nil {
			return err
		}
		if err := r.file.Rows(rows); err != nil {
			return err
		}
		r.report.Rows += uint64(len(rows))
	}
	if err := r.file.From(n.first); err != nil {
		return err
	}
	r.report.From = n.first
	return r.through(ctx, whole.numbers[1])
}

// through applies changes at least up to where a snapshot's pieces are one state.
func (r *rebuilder) through(ctx context.Context, until uint64) error {
	if err := r.changes(ctx); err != nil {
		return err
	}
	if r.file.Seq() < until {
		return fmt.Errorf("%w: %d, which the snapshot of %d needs", ErrGap, r.file.Seq()+1, r.report.From)
	}
	return nil
}

// changes applies what follows on end.
func (r *rebuilder) changes(ctx context.Context) error {
	for {
		at := r.file.Seq()
		list, more, err := r.log.after(ctx, at)
		r.report.Torn = r.log.torn
		if r.o.Partial && (errors.Is(err, ErrTorn) || errors.Is(err, ErrGap)) {
			r.report.Lost, more, err = at+1, false, nil
		}
		if err != nil || !more {
			return err
		}
		if err := r.file.Changes(list); err != nil {
			return err
		}
		r.report.Changes += r.file.Seq() - at
	}
}
