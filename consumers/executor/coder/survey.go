package coder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
	"penstock/infra/wholefile"
)

// codingFile, in the folder of the state, names the coding of which all versions are
// that aren't marked as staged. It isn't there while that is not known.
const codingFile = "coding.json"

// openCoding looks whether the coding in force is the one that versions were looked
// through for. If not all of them count as being in another one until they are.
func (c *Coder) openCoding() error {
	c.surveyed = wholefile.JSON[object.Coding]{Name: filepath.Join(c.o.State, codingFile)}
	have, ok, err := c.surveyed.Read()
	switch {
	case err == nil && ok && have == c.code:
		return nil
	case err != nil:
		c.log.Warn().Err(err).Msg("all versions are looked through for their coding")
	}
	c.unseen.Store(max(1, c.catalog.Stats().Versions))
	return c.forgetCoding()
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
// they are coded anew, after a start with another coding. Versions that come meanwhile are
// of this one.
func (c *Coder) survey(ctx context.Context) {
	for c.unseen.Load() > 0 {
		err := c.surveyAll(ctx)
		if err == nil {
			err = c.surveyed.Keep(c.code)
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
			case v.Coding != c.code:
				marked++
				group.Go(func() error {
					if err := c.catalog.Stage(ctx, id); !errors.Is(err, catalog.ErrNoVersion) {
						return err
					}
					return nil
				})
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
		c.log.Info().Int("versions", marked).Msg("versions of another coding are to be coded anew")
		c.kick()
	}
	return nil
}
