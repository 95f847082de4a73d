package coder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
	"penstock/infra/wholefile"
)

// codingFile, in the folder of the state, says what the versions lie in that the journal
// has nothing of. It isn't there while that is not known.
const codingFile = "coding.json"

// surveyed is what versions were looked through for.
type surveyed struct {
	Coding object.Coding `json:"coding"`
	Stores []string      `json:"stores"` // in which their blobs are
}

// covers tells whether what was found holds still: the coding is in force, and all the
// stores are configured.
func (s *surveyed) covers(c *Coder) bool {
	return s.Coding == c.code && !slices.ContainsFunc(s.Stores, func(name string) bool { return c.named[name] == nil })
}

// openCoding looks whether versions were looked through for the coding and the stores
// that are configured. If not all of them count as not being as intended until they are.
func (c *Coder) openCoding() error {
	c.surveyed = wholefile.JSON[surveyed]{Name: filepath.Join(c.o.State, codingFile)}
	have, ok, err := c.surveyed.Read()
	switch {
	case err == nil && ok && have.covers(c):
		return c.surveyed.Keep(c.surveys()) // with stores that have come
	case err != nil:
		c.log.Warn().Err(err).Msg("all versions are looked through for their coding")
	}
	c.unseen.Store(max(1, c.catalog.Stats().Versions))
	return c.forgetCoding()
}

func (c *Coder) surveys() surveyed {
	return surveyed{c.code, slices.Sorted(maps.Keys(c.named))}
}

// forgetCoding takes the file away, for certain: another coding may come into force.
func (c *Coder) forgetCoding() error {
	err := os.RemoveAll(filepath.Join(c.o.State, codingFile))
	if err == nil {
		var f *os.File
		if f, err = os.Open(c.o.State); err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// survey marks the versions that are of another coding than the one in force, so that
// they are coded anew, and the blobs that lie in stores that are not configured any more,
// so that they are written into others. Versions that come meanwhile have neither.
func (c *Coder) survey(ctx context.Context) {
	for c.unseen.Load() > 0 {
		err := c.surveyAll(ctx)
		if err == nil {
			err = c.surveyed.Keep(c.surveys())
		}
		if err == nil {
			c.unseen.Store(0)
			return
		}
		if ctx.Err() == nil {
			c.retried("survey", "", err)
		}
		if !c.pause(ctx, nil, c.o.Retry) {
			return
		}
	}
}

func (c *Coder) surveyAll(ctx context.Context) error {
	marked := 0
	for after := ""; ; {
		ids, err := c.catalog.Versions(after, page)
		if err != nil {
			return err
		}
		var group errgroup.Group // side by side, they share a transaction
		for _, id := range ids {
			after = id
			v, _, err := c.catalog.Version(id)
			switch {
			case errors.Is(err, catalog.ErrNoVersion):
			case err != nil:
				return errors.Join(err, group.Wait())
			case c.asIntended(v):
			default:
				marked++
				group.Go(func() error { return c.mark(ctx, v) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
		c.unseen.Store(max(1, c.unseen.Load()-int64(len(ids))))
		if len(ids) < page {
			break
		}
	}
	if marked > 0 {
		c.log.Info().Int("versions", marked).Msg("versions of another coding, or in stores that are gone, are to be written anew")
		c.kick()
	}
	return nil
}

func (c *Coder) asIntended(v *object.Version) bool {
	return v.Coding == c.code && len(c.homeless(v)) == 0
}

// homeless are the blobs of a version whose stores are not configured any more.
func (c *Coder) homeless(v *object.Version) (blobs []int) {
	for i, p := range v.Places {
		if v.Landed(i) && c.named[p.Store] == nil {
			blobs = append(blobs, i)
		}
	}
	return blobs
}

// mark notes in the journal that a version isn't as intended.
func (c *Coder) mark(ctx context.Context, v *object.Version) (err error) {
	if v.Coding != c.code {
		err = c.catalog.Stage(ctx, v.ID)
	} else {
		err = c.catalog.Lack(ctx, v.ID, c.homeless(v)...)
	}
	if errors.Is(err, catalog.ErrNoVersion) {
		return nil // it went meanwhile
	}
	return err
}
