package directory

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cespare/xxhash/v2"
)

// A snapshot is what a directory knew, for a start without the bus. Numbers are
// uvarints unless said otherwise:
//
//	magic     8 bytes
//	version   1
//	in step   µs since 1970
//	position  created: ns since 1970; sequence; stored: ns since 1970
//	names     count, then length and bytes of each
//	ghosts    count, then 8 bytes of each
//	records   length and bytes of each; length 0 ends them
//	owners    count
//	checksum  8 bytes, XXH64 of all before
//
// Records are written while changes go on, after the position was taken: reading
// on from there brings each to what it is now, whichever of both is in the file.
const (
	magic           = "\x89PNSTKD\n"
	snapshotVersion = 1
	// rest is how many times as long as the writing the pause after it is at least.
	rest = 20
	// maxSnapshotName bounds the name of a site.
	maxSnapshotName = 1 << 10
)

// keep writes a snapshot now and then, and at the end.
func (d *Directory) keep(ctx context.Context) {
	var written uint64
	every := d.opts.SnapshotEvery
	save := func() {
		d.mu.Lock()
		changes, usable := d.changes, !d.loading && !d.at.created.IsZero()
		d.mu.Unlock()
		if !usable || changes == written {
			return
		}
		began := d.clock.Now()
		if err := d.save(); err != nil {
			d.shown.files.WithLabelValues("write-failed").Inc()
			d.log.Error().Err(err).Str("file", d.opts.Snapshot).Msg("the snapshot of locations could not be written")
			return
		}
		d.shown.files.WithLabelValues("written").Inc()
		written = changes
		every = max(d.opts.SnapshotEvery, rest*d.clock.Now().Sub(began))
	}
	select {
	case <-d.ready:
	case <-ctx.Done():
	}
	for {
		save()
		if d.clock.Sleep(ctx, every) != nil {
			save()
			return
		}
	}
}

// save writes the snapshot beside its place and puts it there.
func (d *Directory) save() error {
	folder := filepath.Dir(d.opts.Snapshot)
	f, err := os.CreateTemp(folder, filepath.Base(d.opts.Snapshot)+".*.tmp")
	if err != nil {
		return err
	}
	if err := errors.Join(d.fill(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), d.opts.Snapshot); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	in, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(in.Sync(), in.Close())
}

// fill writes the snapshot to a file and syncs it.
func (d *Directory) fill(f *os.File) error {
	sum := xxhash.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	d.write(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := f.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64())); err != nil {
		return err
	}
	return f.Sync()
}

// write writes all but the checksum. The writer keeps its first error.
func (d *Directory) write(w *bufio.Writer) {
	d.mu.Lock()
	at := d.at
	b := append([]byte(magic), snapshotVersion)
	b = binary.AppendUvarint(b, uint64(d.inStep.Load()))
	b = binary.AppendUvarint(b, uint64(at.created.UnixNano()))
	b = binary.AppendUvarint(b, at.seq)
	b = binary.AppendUvarint(b, uint64(at.stored.UnixNano()))
	ghosts := make([]byte, 0, 8*len(d.ghosts))
	for g := range d.ghosts {
		ghosts = binary.LittleEndian.AppendUint64(ghosts, g)
	}
	d.mu.Unlock()
	// A record may name a site that is newer than the position: it must be there
	// too, so the names are those of now, and later ones follow as records do, by
	// reading on. Records with a site beyond them are left for that.
	list := *d.names.list.Load()
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(ghosts)/8))
	_, _ = w.Write(b)
	_, _ = w.Write(ghosts)
	owners := uint64(0)
	d.table.each(func(rec []byte) bool {
		_, at := ownerOf(rec)
		if site, _ := whereOf(rec[at:]); int(site) >= len(list) {
			return true
		}
		owners++
		b = binary.AppendUvarint(b[:0], uint64(len(rec)))
		_, _ = w.Write(b)
		_, err := w.Write(rec)
		return err == nil
	})
	b = binary.AppendUvarint(append(b[:0], 0), owners)
	_, _ = w.Write(b)
}

// recall takes in what the snapshot says, if it is there and whole.
func (d *Directory) recall() {
	began := d.clock.Now()
	err := d.load()
	log := d.log.With().Str("file", d.opts.Snapshot).Logger()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.Info().Msg("there is no snapshot of locations yet")
	case err != nil:
		d.forget()
		d.inStep.Store(0)
		d.shown.files.WithLabelValues("refused").Inc()
		log.Warn().Err(err).Msg("the snapshot of locations is refused; they are read from the bus")
	default:
		d.shown.files.WithLabelValues("read").Inc()
		d.setReady()
		age, _ := d.Freshness()
		log.Info().Int("owners", d.Len()).Dur("age", age).Dur("took", d.clock.Now().Sub(began)).Msg("locations as last known")
	}
}

func (d *Directory) load() (err error) {
	f, err := os.Open(d.opts.Snapshot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(len(magic)+9) {
		return fmt.Errorf("%d bytes: %w", info.Size(), ErrSnapshot)
	}
	sum := xxhash.New()
	body := io.TeeReader(io.LimitReader(f, info.Size()-8), sum)
	in := &fileReader{r: bufio.NewReaderSize(body, int(min(1<<20, info.Size())))}
	d.read(in)
	if in.err != nil {
		return in.err
	}
	var want [8]byte
	if _, err := io.ReadFull(f, want[:]); err != nil {
		return fmt.Errorf("checksum: %w: %w", ErrSnapshot, err)
	}
	if binary.LittleEndian.Uint64(want[:]) != sum.Sum64() {
		return fmt.Errorf("checksum differs: %w", ErrSnapshot)
	}
	return nil
}

// read takes in all but the checksum. Until that was compared nobody may see the
// directory.
func (d *Directory) read(in *fileReader) {
	if head := in.bytes(len(magic)); in.err == nil && string(head) != magic {
		in.fail("it does not begin as one")
	}
	if v := in.number(); in.err == nil && v != snapshotVersion {
		in.fail(fmt.Sprintf("version %d, this program knows %d", v, snapshotVersion))
	}
	d.inStep.Store(int64(in.number()))
	d.at.created = time.Unix(0, int64(in.number())).UTC()
	d.at.seq = in.number()
	d.at.stored = time.Unix(0, int64(in.number())).UTC()
	sites := make([]uint32, 0, 16)
	for n := in.number(); n > 0 && in.err == nil; n-- {
		i, ok := d.names.intern(string(in.bytes(int(min(in.number(), maxSnapshotName+1)))))
		if !ok {
			in.fail("too many sites")
		}
		sites = append(sites, i)
	}
	for n := in.number(); n > 0 && in.err == nil; n-- {
		if b := in.bytes(8); in.err == nil {
			d.ghosts[binary.LittleEndian.Uint64(b)] = struct{}{}
		}
	}
	for in.err == nil {
		n := in.number()
		if n == 0 {
			break
		}
		d.takeRecord(in, in.bytes(int(min(n, maxRecord+1))), sites)
	}
	if n := in.number(); in.err == nil && n != uint64(d.Len()) {
		in.fail(fmt.Sprintf("%d owners, %d expected", d.Len(), n))
	}
	if _, err := in.r.ReadByte(); in.err == nil && !errors.Is(err, io.EOF) {
		in.fail("it goes on after its end")
	}
}

func (d *Directory) takeRecord(in *fileReader, b []byte, sites []uint32) {
	if in.err != nil {
		return
	}
	owner, p, ok := checkRecord(b)
	if !ok || int64(p.site) >= int64(len(sites)) {
		in.fail("a record that is none")
		return
	}
	p.site = sites[p.site]
	if _, _, fits := d.table.put(string(owner), p); !fits {
		in.fail("too large")
	}
}

// fileReader reads the parts of a snapshot and keeps the first error.
type fileReader struct {
	r   *bufio.Reader
	buf [maxRecord + 1]byte
	err error
}

func (f *fileReader) fail(what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %w", what, ErrSnapshot)
	}
}

func (f *fileReader) number() uint64 {
	if f.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(f.r)
	if err != nil {
		f.fail("a number: " + err.Error())
	}
	return v
}

// bytes are those of the next part, until the next call.
func (f *fileReader) bytes(n int) []byte {
	if f.err != nil {
		return nil
	}
	if n > maxRecord {
		f.fail(fmt.Sprintf("a part of %d bytes", n))
		return nil
	}
	if _, err := io.ReadFull(f.r, f.buf[:n]); err != nil {
		f.fail("cut off: " + err.Error())
		return nil
	}
	return f.buf[:n]
}
