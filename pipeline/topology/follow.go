package topology

import (
	"context"
	"errors"
	"io"
	"time"

	"penstock/infra/errorkind"
	"penstock/infra/geo"
	"penstock/infra/publisher"
	"penstock/producers/accesslog"
	"penstock/producers/follow"
	"penstock/schemas/event"
)

// Follow publishes the lines of access logs as they grow.
type Follow struct {
	Alone
	// Paths are globs; "-" is Stdin.
	Paths []string
	Stdin io.Reader
	// Format is one that accesslog knows, a file, or dialect:string; empty is told
	// from each file's first lines.
	Format string
	// Site and Component are those of rows whose lines say nothing of them.
	Site, Component string
	GeoIP           string
	OwnerDepth      int
	Zone            string // of times that name none; empty: UTC
	Disorder        time.Duration
	FromEnd         bool
	Rotated         []string
	// Chosen, if set, is told the format of each file.
	Chosen func(path, choice string)
}

// Run follows until the context ends. What was read is committed before it returns.
func (f *Follow) Run(ctx context.Context) error {
	if f.Config == nil || f.Site != "" && f.Config.Site(f.Site) == nil {
		return errorkind.Errorf(ErrOptions, "site %q is not in the configuration", f.Site)
	}
	if f.Config.Privacy.UserKey == "" {
		return errorkind.Errorf(ErrOptions, "privacy.user_key is not set: users must be named by a key that is yours")
	}
	return f.run(ctx, "follow", f.start)
}

func (f *Follow) start(ctx context.Context, v *alone) (string, error) {
	logs := accesslog.Options{Key: []byte(f.Config.Privacy.UserKey), OwnerDepth: f.OwnerDepth}
	var err error
	if logs.Zone, err = zoneOf(f.Zone); err != nil {
		return "", err
	}
	if f.GeoIP != "" {
		db, err := geo.Open(f.GeoIP)
		if err != nil {
			return "", err
		}
		logs.Geo = db
	}
	p, err := publisher.New(ctx, publisher.Options{
		Client: v.client, Entry: f.Name, Positions: true, SpoolDir: f.dir("spool"), SpoolMax: int64(f.Config.Entry.Spool),
		Logger: f.part("publisher"), Registerer: v.registry,
	})
	if err != nil {
		return "", err
	}
	follower, err := follow.New(follow.Options{
		Client: v.client, Entry: f.Name, Paths: f.Paths, Stdin: f.Stdin, Publisher: p, Disorder: f.Disorder, FromEnd: f.FromEnd,
		Rotated: f.Rotated, Logger: f.part("follow"), Registerer: v.registry,
		Parser: func(path string, sample []byte) (follow.LineParser, error) { return f.parser(path, sample, logs) },
	})
	if err != nil {
		return "", errors.Join(err, p.Close(ctx))
	}
	v.parts.Start("follow", func(ctx context.Context) error {
		err := follower.Run(ctx)
		if err == nil && ctx.Err() == nil {
			v.parts.finish() // Standard input has ended, and nothing else is followed.
		}
		return err
	})
	v.parts.Start("publisher", closing(p, v.client))
	return "", nil
}

// parser chooses how the lines of a file are read.
func (f *Follow) parser(path string, sample []byte, o accesslog.Options) (follow.LineParser, error) {
	lines, choice, err := accesslog.OpenLines(accesslog.ChoiceOptions{Name: f.Format, Sample: sample}, o)
	if err != nil {
		return nil, err
	}
	if f.Chosen != nil {
		f.Chosen(path, choice.String())
	}
	return &logLines{Lines: lines, site: f.Site, component: f.Component}, nil
}

// logLines are the lines of an access log as a follower wants them.
type logLines struct {
	*accesslog.Lines
	site, component string
}

// Parse fills the row and says what of it the log leaves open.
func (l *logLines) Parse(line []byte, r *event.Request) error {
	return l.complete(l.Lines.Parse(line, r), r)
}

// Next fills the row from the next record of the same line.
func (l *logLines) Next(r *event.Request) error { return l.complete(l.Lines.Next(r), r) }

func (l *logLines) complete(err error, r *event.Request) error {
	switch {
	case errors.Is(err, accesslog.ErrPart):
		return follow.ErrPart
	case errors.Is(err, accesslog.ErrHeader):
		return follow.ErrNoRow
	case err != nil:
		return err
	}
	if r.ToSite == "" {
		r.ToSite = l.site
	}
	if r.ToComponent == "" {
		r.ToComponent = l.component
	}
	return nil
}
