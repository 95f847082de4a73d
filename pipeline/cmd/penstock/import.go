package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"penstock/infra/geo"
	"penstock/producers/accesslog"
	"penstock/producers/checkins"
	"penstock/producers/recording"
	"penstock/producers/workload"
	"penstock/schemas/event"
)

type importCmd struct {
	Recording importRecordingCmd `cmd:"" help:"Any recording: Parquet, Arrow IPC, CSV, JSON Lines, access logs (plain, gz, zst)."`
	Accesslog importAccesslogCmd `cmd:"" help:"Access logs of NGINX, Apache, HAProxy, Envoy, Traefik, Caddy, AWS ALB and others."`
	Spans     importSpansCmd     `cmd:"" help:"Spans of traces, as calls: OTLP (JSON lines, protobuf), Jaeger, Zipkin v2, span CSV."`
	Checkins  importCheckinsCmd  `cmd:"" help:"Check-ins and friendships, as writes and the reads that they cause."`
	Workload  importWorkloadCmd  `cmd:"" help:"A made-up day of people and their friends."`
}

// maxShown bounds the bad lines that are printed; all are counted.
const maxShown = 10

// badLines prints the first bad lines and keeps the first as an error for
// --strict.
type badLines struct {
	con    *console
	strict bool
	n      int64
	first  error
}

func (b *badLines) add(l recording.BadLine) {
	b.n++
	if b.first == nil {
		b.first = &l
	}
	if b.n <= maxShown {
		fmt.Fprintf(b.con.err, "malformed: %v\n", &l)
	}
	if b.n == maxShown+1 {
		fmt.Fprintln(b.con.err, "malformed: and more, counted only")
	}
}

func (b *badLines) err() error {
	if b.strict && b.first != nil {
		return fmt.Errorf("strict: %w", b.first)
	}
	return nil
}

// output is where an import goes.
type output struct {
	Output string `short:"o" required:"" help:"The recording to write; its ending tells the format (.parquet, .arrow, .csv, .jsonl)." type:"path"`
	Strict bool   `help:"Fail at the first line that cannot be used."`
}

// check refuses, before anything is read or written, a name that can't be written
// to and one that is read: whoever slips must not lose what he has.
func (o *output) check(reads ...string) error {
	if err := recording.CheckName(o.Output); err != nil {
		return fmt.Errorf("%w: -o: %w", errUsage, err)
	}
	to, err := os.Stat(o.Output)
	if err != nil {
		return nil //nolint:nilerr // A file that isn't there is not read; what else is wrong shows when it is made.
	}
	for _, name := range reads {
		if from, err := os.Stat(name); err == nil && os.SameFile(from, to) {
			return fmt.Errorf("%w: -o %s is read: it would be replaced", errUsage, o.Output)
		}
	}
	return nil
}

// write runs fill with a writer; without an error the file appears.
func (o *output) write(con *console, fill func(w *recording.Writer) error) error {
	w, err := recording.Create(o.Output, recording.WriterOptions{})
	if err != nil {
		return err
	}
	if err := fill(w); err != nil {
		return errors.Join(err, w.Abort())
	}
	rows := w.Rows()
	if err := w.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "%s: %d requests\n", o.Output, rows)
	return err
}

type importRecordingCmd struct {
	Files  []string `arg:"" help:"Recordings; several are merged by time." type:"existingfile"`
	Format string   `help:"Format of all files: parquet, arrow, csv, jsonl, accesslog, or what import accesslog takes; by default told from their content."`
	logFlags
	output
}

// logFlags say how access logs become requests.
type logFlags struct {
	GeoIP      string `name:"geoip" help:"mmdb file, or a folder with country ranges and centroids; without one places are unknown." type:"path"`
	OwnerDepth int    `help:"How many segments of the path name the owner." default:"1"`
	Zone       string `help:"Time zone of logs that name none, such as Europe/Zurich." default:"UTC"`
	UserKey    string `help:"Keys the hash of client addresses; by default the content does." env:"PENSTOCK_USER_KEY"`
}

// options opens what the flags name.
func (l *logFlags) options(con *console, files []string) (accesslog.Options, error) {
	key := l.UserKey
	if key == "" {
		var err error
		if key, err = recording.Digest(con.ctx, files); err != nil {
			return accesslog.Options{}, err
		}
	}
	log := accesslog.Options{Key: []byte(key), OwnerDepth: l.OwnerDepth}
	var err error
	if log.Zone, err = time.LoadLocation(l.Zone); err != nil {
		return accesslog.Options{}, fmt.Errorf("%w: --zone: %w", errUsage, err)
	}
	if l.GeoIP != "" {
		db, err := geo.Open(l.GeoIP)
		if err != nil {
			return accesslog.Options{}, err
		}
		log.Geo = db
	}
	return log, nil
}

// Run reads recordings and writes one.
func (c *importRecordingCmd) Run(con *console) error {
	if err := c.check(c.Files...); err != nil {
		return err
	}
	format, choice, _, err := recording.Named(c.Format)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	log, err := c.options(con, c.Files)
	if err != nil {
		return err
	}
	return importFiles(con, &c.output, c.Files, recording.Options{AccessLog: log, Log: choice, Format: format})
}

// importFiles copies recordings into one.
func importFiles(con *console, to *output, files []string, o recording.Options) error {
	bad := &badLines{con: con, strict: to.Strict}
	o.Bad = bad.add
	o.Note = func(file, text string) { fmt.Fprintf(con.err, "%s: %s\n", file, text) }
	r, err := recording.Open(files, o)
	if err != nil {
		return err
	}
	defer r.Close()
	err = to.write(con, func(w *recording.Writer) error {
		return copyRows(con, r.Next, w, bad.err)
	})
	if bad.n > 0 {
		fmt.Fprintf(con.err, "malformed: %d lines\n", bad.n)
	}
	return err
}

// copyRows writes what next returns until its end.
func copyRows(con *console, next func(*event.Request) error, w *recording.Writer, check func() error) error {
	var q event.Request
	for n := 0; ; n++ {
		if n%4096 == 0 && con.ctx.Err() != nil {
			return con.ctx.Err()
		}
		err := next(&q)
		if fault := check(); fault != nil {
			return fault
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.Write(&q); err != nil {
			return err
		}
	}
}

type importCheckinsCmd struct {
	Events  string `arg:"" help:"Lines of user, time, lat, lon, venue, with tabs between (plain or gz)." type:"existingfile"`
	Friends string `required:"" help:"Lines of two users, with a tab between." type:"existingfile"`
	Reads   int    `help:"Reads that one check-in causes." default:"10"`
	Seed    uint64 `help:"Seed of the draw of readers and times." default:"1"`
	output
}

// Run turns check-ins into a recording.
func (c *importCheckinsCmd) Run(con *console) error {
	if err := c.check(c.Events, c.Friends); err != nil {
		return err
	}
	bad := &badLines{con: con, strict: c.Strict}
	var stats checkins.Stats
	err := c.write(con, func(w *recording.Writer) (err error) {
		stats, err = checkins.Read(con.ctx, c.Events, c.Friends, checkins.Options{Bad: bad.add, Reads: c.Reads, Seed: c.Seed},
			func(r *event.Request) error {
				if err := bad.err(); err != nil {
					return err
				}
				return w.Write(r)
			})
		return errors.Join(err, bad.err())
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "%d check-ins of %d users, %d reads, %d unlocated (no friend had a place), %d malformed lines\n",
		stats.CheckIns, stats.Users, stats.Reads, stats.Unlocated, stats.Bad)
	return err
}

type importWorkloadCmd struct {
	Params string `arg:"" help:"Parameters of the workload, in YAML." type:"existingfile"`
	output
}

// Run makes up a day.
func (c *importWorkloadCmd) Run(con *console) error {
	if err := c.check(c.Params); err != nil {
		return err
	}
	b, err := os.ReadFile(c.Params)
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	params, err := workload.Decode(b, c.Params)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	g, err := workload.New(params)
	if err != nil {
		return err
	}
	fmt.Fprint(con.out, g.Plan())
	return c.write(con, func(w *recording.Writer) error {
		return copyRows(con, g.Next, w, func() error { return nil })
	})
}
