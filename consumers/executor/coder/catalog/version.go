package catalog

import (
	"context"
	"fmt"
	"slices"

	"penstock/consumers/executor/coder/object"
)

// document encodes a version before the transaction, which needn't wait for that.
func document(version *object.Version) ([]byte, error) {
	if version == nil {
		return nil, fmt.Errorf("%w: no version", ErrInput)
	}
	if err := checkName("version", version.ID, maxID); err != nil {
		return nil, err
	}
	for _, p := range placed(version) {
		if err := checkPlace(p); err != nil {
			return nil, err
		}
	}
	b, err := version.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return b, nil
}

// placed are the places of a version that blobs lie at: those that haven't landed have
// the zero place.
func placed(version *object.Version) []object.Place {
	if version.Lacking() == 0 {
		return version.Places
	}
	return slices.DeleteFunc(slices.Clone(version.Places), func(p object.Place) bool { return p == object.Place{} })
}

// version reads a document, and the rest. It returns ErrNoVersion.
func (v *view) version(id string) (*object.Version, Rest, error) {
	value := v.get(versions, []byte(id))
	if value == nil {
		return nil, Rest{}, fmt.Errorf("%w: %s", ErrNoVersion, id)
	}
	return decodeVersion(id, value, v.get(rests, []byte(id)))
}

func decodeVersion(id string, value, rest []byte) (*object.Version, Rest, error) {
	version, err := object.Parse(value)
	if err == nil && version.ID != id {
		err = fmt.Errorf("document of %s", version.ID)
	}
	if err != nil {
		return nil, Rest{}, fmt.Errorf("%w: version %s: %w", ErrDamaged, id, err)
	}
	var r Rest
	if rest != nil {
		if r, err = decodeRest(rest); err != nil {
			return nil, Rest{}, fmt.Errorf("version %s: %w", id, err)
		}
	}
	return version, r, nil
}

// addVersion writes a new version whose blobs the intents have written, and ends these.
func (v *view) addVersion(version *object.Version, doc []byte, ended []string, unwritten []object.Place, rest Rest) error {
	if v.get(versions, []byte(version.ID)) != nil {
		return fmt.Errorf("%w: version %s", ErrTaken, version.ID)
	}
	if err := v.endIntents(ended, placed(version), nil, unwritten...); err != nil {
		return err
	}
	v.put(versions, []byte(version.ID), doc)
	return v.putRest(version, rest)
}

func (v *view) putRest(version *object.Version, rest Rest) error {
	rest, err := rest.of(len(version.Places))
	if err != nil {
		return err
	}
	switch key := []byte(version.ID); {
	case !rest.None():
		v.put(rests, key, rest.encode())
	case v.get(rests, key) != nil:
		v.remove(rests, key)
	}
	return nil
}

// dropVersion removes a version and queues its blobs for deletion. The document goes
// before the rest, so that a reader who holds the version keeps both.
func (v *view) dropVersion(id string) error {
	version, rest, err := v.version(id)
	if err != nil {
		return err
	}
	for _, p := range placed(version) {
		v.queue(p, id)
	}
	v.remove(versions, []byte(id))
	if !rest.None() {
		v.remove(rests, []byte(id))
	}
	return nil
}

// endIntents ends intents of which the places kept are some version's now, and queues
// their other places for deletion, but for those unwritten. Every place kept is an
// intent's or one of own.
func (v *view) endIntents(ids []string, kept, own []object.Place, unwritten ...object.Place) error {
	free := make(map[object.Place]bool, len(kept))
	for _, p := range own {
		free[p] = true
	}
	for n, id := range ids {
		value := v.get(intents, []byte(id))
		if value == nil || slices.Contains(ids[:n], id) {
			return fmt.Errorf("%w: %s", ErrNoIntent, id)
		}
		i, err := decodeIntent(id, value)
		if err != nil {
			return err
		}
		for _, p := range i.Places {
			free[p] = true
			if !slices.Contains(kept, p) && !slices.Contains(unwritten, p) {
				v.queue(p, id)
			}
		}
		v.remove(intents, []byte(id))
	}
	for _, p := range kept {
		if !free[p] {
			return fmt.Errorf("%w: %s/%s is of no intent", ErrPlace, p.Store, p.Key)
		}
	}
	return nil
}

// Version gives a document, and what is left to do with it. It returns ErrNoVersion;
// a version that is held can be read until it is released, whatever became of it.
func (c *Catalog) Version(id string) (version *object.Version, rest Rest, err error) {
	err = c.read(func(v *view) error {
		version, rest, err = v.version(id)
		return err
	})
	if doc, r := c.holds.stashed(id); doc != nil && version == nil {
		return decodeVersion(id, doc, r)
	}
	return version, rest, err
}

// Versions lists up to limit ids of versions after another, ascending: of records and of
// parts.
func (c *Catalog) Versions(after string, limit int) (ids []string, err error) {
	err = c.each(versions, after, func(id string, _ []byte) (bool, error) {
		if len(ids) < limit {
			ids = append(ids, id)
		}
		return len(ids) < limit, nil
	})
	return ids, err
}

// each calls f for the rows of a table after a key, in their order, until it says no.
func (c *Catalog) each(t Table, after string, f func(key string, value []byte) (bool, error)) error {
	return c.read(func(v *view) error {
		cursor := v.cursor(t)
		for key, value := cursor.Seek([]byte(after)); key != nil; key, value = cursor.Next() {
			if string(key) == after {
				continue
			}
			if more, err := f(string(key), value); err != nil || !more {
				return err
			}
		}
		return nil
	})
}

// SettleInput replaces a document by another one of the same bytes.
type SettleInput struct {
	Version string
	// Document is the new one, nil if it stays. Its places are the old one's or of
	// Intents. Places that only the old one or the intents had are queued for deletion.
	Document *object.Version
	Intents  []string
	// Rest is what is left to do now.
	Rest Rest
}

// Settle returns ErrNoVersion if the version is gone; then the intents are ended and
// their places queued for deletion. It also returns ErrNoIntent, ErrPlace, ErrInput.
func (c *Catalog) Settle(ctx context.Context, in SettleInput) error {
	var doc []byte
	if in.Document != nil {
		var err error
		if doc, err = document(in.Document); err != nil {
			return err
		}
		if in.Document.ID != in.Version {
			return fmt.Errorf("%w: document of %s for %s", ErrInput, in.Document.ID, in.Version)
		}
	}
	var gone bool
	err := c.change(ctx, func(v *view) error {
		gone = v.get(versions, []byte(in.Version)) == nil
		if gone {
			return v.endIntents(in.Intents, nil, nil)
		}
		return v.settle(in, doc)
	})
	if err == nil && gone {
		err = fmt.Errorf("%w: %s", ErrNoVersion, in.Version)
	}
	return err
}

func (v *view) settle(in SettleInput, doc []byte) error {
	old, _, err := v.version(in.Version)
	if err != nil {
		return err
	}
	if in.Document == nil {
		if err := v.endIntents(in.Intents, nil, nil); err != nil {
			return err
		}
		return v.putRest(old, in.Rest)
	}
	next := in.Document
	if next.Shape.Size != old.Shape.Size || next.SHA256 != old.SHA256 {
		return fmt.Errorf("%w: version %s of other bytes", ErrInput, in.Version)
	}
	if err := v.endIntents(in.Intents, placed(next), placed(old)); err != nil {
		return err
	}
	for _, p := range placed(old) {
		if !slices.Contains(next.Places, p) {
			v.queue(p, in.Version)
		}
	}
	v.put(versions, []byte(in.Version), doc)
	return v.putRest(next, in.Rest)
}

// Landed says that blobs are in their stores. It returns ErrNoVersion.
func (c *Catalog) Landed(ctx context.Context, version string, blobs ...int) error {
	return c.changeRest(ctx, version, func(r *Rest) {
		r.Lacking = slices.DeleteFunc(r.Lacking, func(i int) bool { return slices.Contains(blobs, i) })
	})
}

// Lack says that blobs aren't in their stores, or are damaged. It returns ErrNoVersion,
// and ErrInput for a blob that the version hasn't.
func (c *Catalog) Lack(ctx context.Context, version string, blobs ...int) error {
	return c.changeRest(ctx, version, func(r *Rest) { r.Lacking = append(r.Lacking, blobs...) })
}

func (c *Catalog) changeRest(ctx context.Context, id string, change func(*Rest)) error {
	return c.change(ctx, func(v *view) error {
		version, rest, err := v.version(id)
		if err != nil {
			return err
		}
		before := rest.encode()
		change(&rest)
		if rest, err = rest.of(len(version.Places)); err != nil || string(before) == string(rest.encode()) {
			return err
		}
		return v.putRest(version, rest)
	})
}
