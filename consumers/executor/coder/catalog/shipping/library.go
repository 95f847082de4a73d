package shipping

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

const sumBytes = sha256.Size

// library is all blobs of the log, wherever they are.
type library struct {
	coder    string
	patience time.Duration
	where    map[name][]chunks.Store
	names    []name // those of where, without bytes
	torn     []string
	// logs are those of the term that is read, by their first change; near are those
	// taken out of it that may follow on what was read.
	logs, near []name
}

func (l *library) add(s chunks.Store, names []name) {
	if l.where == nil {
		l.where = make(map[name][]chunks.Store)
	}
	for _, n := range names {
		n.bytes = 0
		if l.where[n] == nil {
			l.names = append(l.names, n)
		}
		l.where[n] = append(l.where[n], s)
	}
}

// snapshots gives those that are said to be whole, the newest first.
func (l *library) snapshots() (list []name) {
	for _, n := range l.names {
		if n.kind == kindSnapshot {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b name) int {
		return cmp.Or(cmp.Compare(b.term, a.term), cmp.Compare(b.first, a.first))
	})
	return list
}

// blob reads a blob from the first store that has it whole, and with the sum if one is
// given. It returns ErrTorn with all that was found, or the stores' errors if none said
// anything else.
func (l *library) blob(ctx context.Context, n name, sum []byte) (blob, error) {
	key := n.key(l.coder)
	var failed []error
	for _, s := range l.where[n] {
		b, err := l.one(ctx, s, n, sum)
		if err == nil {
			return b, nil
		}
		if errors.Is(err, ErrFormat) || ctx.Err() != nil {
			return blob{}, err
		}
		if errors.Is(err, ErrTorn) {
			if where := s.Name() + ":" + key; !slices.Contains(l.torn, where) {
				l.torn = append(l.torn, where)
			}
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		return blob{}, fmt.Errorf("%w: %s: in no store", ErrTorn, key)
	}
	return blob{}, errors.Join(failed...)
}

func (l *library) one(ctx context.Context, s chunks.Store, n name, sum []byte) (blob, error) {
	key := n.key(l.coder)
	var raw []byte
	err := patient(ctx, l.patience, func(ctx context.Context) (err error) {
		raw, err = fetch(ctx, s, key)
		return err
	})
	if err != nil {
		return blob{}, fmt.Errorf("%s:%s: %w", s.Name(), key, err)
	}
	b, err := unseal(s.Name()+":"+key, n.kind, raw)
	if err != nil {
		return blob{}, err
	}
	if got := sha256.Sum256(raw); sum != nil && !bytes.Equal(got[:], sum) {
		return blob{}, fmt.Errorf("%w: %s:%s: of another snapshot", ErrTorn, s.Name(), key)
	}
	second := n.last
	if n.kind == kindPart {
		second = n.part
	}
	if b.id.Coder != l.coder || b.id.Term != n.term || b.numbers[0] != n.first || (n.kind != kindSnapshot && b.numbers[1] != second) {
		return blob{}, fmt.Errorf("%w: %s:%s: is another blob", ErrTorn, s.Name(), key)
	}
	return b, nil
}

// open begins to read the log of a term.
func (l *library) open(term uint32) {
	l.logs, l.near = nil, nil
	for _, n := range l.names {
		if n.kind == kindLog && n.term == term {
			l.logs = append(l.logs, n)
		}
	}
	slices.SortFunc(l.logs, func(a, b name) int { return cmp.Compare(a.first, b.first) })
}

// begins tells whether the first change of all is there.
func (l *library) begins() bool { return len(l.logs) > 0 && l.logs[0].first == 1 }

// after gives changes that follow on a number, false if there are none. Numbers must not
// fall from call to call. It returns ErrGap if there are only later ones, and ErrTorn if
// those that follow are nowhere whole.
func (l *library) after(ctx context.Context, seq uint64) (list []catalog.Change, more bool, err error) {
	for len(l.logs) > 0 && l.logs[0].first <= seq+1 {
		l.near, l.logs = append(l.near, l.logs[0]), l.logs[1:]
	}
	l.near = slices.DeleteFunc(l.near, func(n name) bool { return n.last <= seq })
	if len(l.near) == 0 {
		if len(l.logs) > 0 {
			return nil, false, fmt.Errorf("%w: %d", ErrGap, seq+1)
		}
		return nil, false, nil
	}
	// The longest first: batches that were shipped twice overlap.
	slices.SortFunc(l.near, func(a, b name) int {
		return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(a.first, b.first))
	})
	var failed []error
	for _, n := range l.near {
		b, err := l.blob(ctx, n, nil)
		if err == nil {
			list, err = b.changes(n.key(l.coder))
		}
		if err == nil {
			return list, true, nil
		}
		failed = append(failed, err)
	}
	return nil, false, errors.Join(failed...)
}
