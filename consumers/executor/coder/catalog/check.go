package catalog

import (
	"bytes"
	"context"
	"fmt"

	"penstock/consumers/executor/coder/field"
	"penstock/consumers/executor/coder/object"
)

// problemsMost is how many problems a report holds; the rest are counted.
const problemsMost = 100

// CheckReport is what Check found.
type CheckReport struct {
	// Stored are the stats that were kept, Counted what the rows say.
	Stored, Counted Stats
	// Problems are in words, the first hundred of Found. None means that the catalog
	// is whole.
	Problems []string
	Found    int
}

// Check reads every row and compares all with all: that each row can be read and has its
// only encoding, that each version is of exactly one record or part, that each place of a
// blob is in exactly one version, intent or deletion, and that the stats are what the
// rows say. It reads in one transaction and keeps all ids and places in memory, so
// it is for tests and for scrubs, not for every minute. It returns ctx's error and what
// the disk says.
func (c *Catalog) Check(ctx context.Context) (CheckReport, error) {
	var report CheckReport
	err := c.read(func(v *view) error {
		k := &checker{v: v, report: &report, owners: make(map[string]string), places: make(map[object.Place]string)}
		var err error
		if _, report.Stored, err = decodeState(v.tx.Bucket(metaBucket).Get(stateKey)); err != nil {
			k.problem("%v", err)
		}
		// What refers to versions comes before them.
		for _, t := range [...]Table{buckets, records, parts, manifests, versions, rests, intents, deletes, repeats, uploads} {
			if err := k.table(ctx, t); err != nil {
				return err
			}
		}
		for id, owner := range k.owners {
			if v.get(versions, []byte(id)) == nil {
				k.problem("%s refers to version %s, which isn't there", owner, id)
			}
		}
		if report.Counted != report.Stored {
			k.problem("stats are %+v, rows say %+v", report.Stored, report.Counted)
		}
		return nil
	})
	return report, err
}

type checker struct {
	v      *view
	report *CheckReport
	owners map[string]string       // version → whose it is
	places map[object.Place]string // blob → whose it is
}

func (k *checker) problem(format string, args ...any) {
	if k.report.Found++; len(k.report.Problems) < problemsMost {
		k.report.Problems = append(k.report.Problems, fmt.Sprintf(format, args...))
	}
}

func (k *checker) table(ctx context.Context, t Table) error {
	cursor := k.v.cursor(t)
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		what := fmt.Sprintf("%v %q", t, key)
		if err := k.report.Counted.count(t, value, 1); err != nil {
			k.problem("%s: %v", what, err)
			continue
		}
		again, err := k.row(t, key, value, what)
		switch {
		case err != nil:
			k.problem("%s: %v", what, err)
		case again != nil && !bytes.Equal(again, value):
			k.problem("%s: not as it would be written", what)
		}
	}
	return nil
}

// row checks one row and gives what it would be written as.
func (k *checker) row(t Table, key, value []byte, what string) (again []byte, err error) {
	switch t {
	case buckets:
		b, err := decodeBucket(string(key), value)
		return field.AppendTime([]byte{valueFormat}, b.Created), err
	case records:
		return k.record(key, what)
	case manifests:
		if k.owners[string(key)] == "" {
			k.problem("%s: of no record", what)
		}
	case versions:
		return k.version(string(key), value, what)
	case rests:
		return k.rest(string(key), value)
	case intents:
		i, err := decodeIntent(string(key), value)
		k.own(i.Places, what)
		return i.encode(), err
	case deletes:
		d, err := decodeDeletion(key, value)
		k.own([]object.Place{d.Place}, what)
		return field.AppendText(appendNumber([]byte{valueFormat}, d.seq), d.Version), err
	case repeats:
		r, err := decodeRepeat(key, value)
		k.own([]object.Place{r.Place}, what)
		return r.encode(), err
	case uploads:
		return k.upload(key, value)
	case parts:
		return k.part(key, value, what)
	}
	return nil, nil
}

func (k *checker) own(places []object.Place, what string) {
	for _, p := range places {
		if other, taken := k.places[p]; taken {
			k.problem("blob %s/%s is of %s and of %s", p.Store, p.Key, other, what)
		}
		k.places[p] = what
	}
}

func (k *checker) refer(version, what string) {
	if other := k.owners[version]; other != "" {
		k.problem("version %s is of %s and of %s", version, other, what)
	}
	k.owners[version] = what
}

func (k *checker) record(row []byte, what string) ([]byte, error) {
	bucket, key, ok := cut(row)
	if !ok || k.v.get(buckets, []byte(bucket)) == nil {
		k.problem("%s: of no bucket", what)
	}
	r, err := k.v.record(bucket, key)
	if err != nil {
		return nil, err
	}
	var size int64
	for _, p := range r.Parts {
		k.refer(p.Version, what)
		size += p.Size
	}
	if size != r.Size {
		k.problem("%s: %d bytes in parts of %d", what, r.Size, size)
	}
	return r.encode(), nil
}

func (k *checker) version(id string, value []byte, what string) ([]byte, error) {
	if k.owners[id] == "" {
		k.problem("%s: of no record and no part", what)
	}
	version, _, err := decodeVersion(id, value, nil)
	if err != nil {
		return nil, err
	}
	k.own(placed(version), what)
	return nil, nil
}

func (k *checker) rest(id string, value []byte) ([]byte, error) {
	version, _, err := k.v.version(id)
	if err != nil {
		return nil, err
	}
	r, err := decodeRest(value)
	if err == nil {
		r, err = r.of(len(version.Places))
	}
	return r.encode(), err
}

func (k *checker) upload(row, value []byte) ([]byte, error) {
	bucket, rest, _ := cut(row)
	key, id, ok := cut([]byte(rest))
	if !ok || k.v.get(buckets, []byte(bucket)) == nil {
		return nil, fmt.Errorf("%w: of no bucket", ErrDamaged)
	}
	u, err := decodeUpload(bucket, key, id, value)
	return u.encode(), err
}

func (k *checker) part(key, value []byte, what string) ([]byte, error) {
	if len(key) < 3 || k.v.get(uploads, key[:len(key)-3]) == nil {
		k.problem("%s: of no upload", what)
	}
	p, err := decodePart(0, value)
	k.refer(p.Version, what)
	return p.encode(), err
}

// Compare returns the first difference between two catalogs in what they know, as an
// error, and nil if there is none. What is each file's own, its instance, its term and
// its changes, isn't compared.
func Compare(a, b *Catalog) error {
	if a.Seq() != b.Seq() {
		return fmt.Errorf("changes: %d and %d", a.Seq(), b.Seq())
	}
	if a.Stats() != b.Stats() {
		return fmt.Errorf("stats: %+v and %+v", a.Stats(), b.Stats())
	}
	const piece = 1 << 20
	for at, end := (Spot{}), false; !end; {
		x, next, last, _, err := a.Scan(at, piece)
		if err != nil {
			return err
		}
		y, _, _, _, err := b.Scan(at, piece)
		if err != nil {
			return err
		}
		if err := compareRows(x, y); err != nil {
			return err
		}
		at, end = next, last
	}
	return nil
}

func compareRows(x, y []byte) error {
	for len(x) > 0 || len(y) > 0 {
		if len(x) == 0 || len(y) == 0 {
			return fmt.Errorf("one has %d bytes of rows more", len(x)+len(y))
		}
		p, restX, err := ReadRow(x)
		if err != nil {
			return err
		}
		q, restY, err := ReadRow(y)
		if err != nil {
			return err
		}
		if p.Table != q.Table || !bytes.Equal(p.Key, q.Key) || !bytes.Equal(p.Value, q.Value) {
			return fmt.Errorf("%v %q and %v %q", p.Table, p.Key, q.Table, q.Key)
		}
		x, y = restX, restY
	}
	return nil
}
