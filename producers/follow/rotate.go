package follow

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// truncated deals with a file that holds other content than before: it was
// truncated, or its inode was given to another file. What was not read of the old
// content is looked for among the copies; the new one is read from its beginning.
// A rotated file's is not, for it may be a copy: the next scan sees to it.
func (f *Follower) truncated(s *stream, now time.Time) {
	if s.state != live || rotatedName(filepath.Base(s.real)) {
		delete(f.dirs, s.dir)
		f.lose(s, now)
		return
	}
	f.m.rotations.WithLabelValues(s.pattern, "truncated").Inc()
	f.o.Logger.Info().Str("path", s.real).Int64("position", s.cursor.offset).Msg("file was truncated")
	before := s.restart(now)
	if before.telling() {
		f.streams = append(f.streams, before)
	}
	s.soon(now)
	f.dirty = true
}

// renamed notes that the path of a stream leads to it no more.
func (f *Follower) renamed(s *stream, now time.Time) {
	f.m.rotations.WithLabelValues(s.pattern, "renamed").Inc()
	f.o.Logger.Info().Str("path", s.path).Int64("position", s.cursor.offset).Msg("file was renamed or deleted")
	s.state, s.still = moved, now
	if path := f.findID(s); path != "" {
		s.place(path)
	}
	f.scanDue = now // what is there instead is new
	f.dirty = true
}

// displaced deals with a stream that is not open, and not where it was: it was
// renamed, or is gone but for a copy.
func (f *Follower) displaced(s *stream, now time.Time) {
	f.dirty = true
	f.scanDue = now
	if s.state == live || s.state == moved {
		if path := f.findID(s); path != "" {
			if s.state == live {
				f.m.rotations.WithLabelValues(s.pattern, "renamed").Inc()
			}
			s.place(path)
			s.state, s.still, s.behind = moved, now, true
			s.soon(now)
			return
		}
		f.m.rotations.WithLabelValues(s.pattern, "removed").Inc()
	}
	f.lose(s, now)
}

// lose notes that a stream is not where it was, and nowhere else but for a copy.
func (f *Follower) lose(s *stream, now time.Time) {
	f.dirty, f.scanDue = true, now
	f.unname(s)
	s.close()
	if !s.telling() {
		// Nothing was read of it, and its inode may be another file's by now: a
		// rotated file that is a copy of nothing is found as one of its own.
		s.state, s.rested, s.behind, f.forgetful = done, now.UnixMicro(), false, true
		return
	}
	s.state, s.searched, s.behind = lost, now, true
	s.soon(now)
}

// unname forgets where a stream lies; other content may come to lie there.
func (f *Follower) unname(s *stream) {
	if f.byID[s.id] == s {
		delete(f.byID, s.id)
	}
	s.id = none
}

// findID is the path of a file of the same folders that is the stream's, "" if
// there is none.
func (f *Follower) findID(s *stream) string {
	for _, dir := range f.folders(s) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !e.Type().IsRegular() {
				continue
			}
			fi, err := e.Info()
			if err != nil {
				continue
			}
			if id, _ := idOf(fi); id == s.id {
				path := filepath.Join(dir, e.Name())
				if f.isPlain(path, s) {
					return path
				}
			}
		}
	}
	return ""
}

// isPlain reports whether a file is the stream's content, not compressed.
func (f *Follower) isPlain(path string, s *stream) bool {
	h, src := f.holds(path, s)
	if src == nil {
		return h == holdsStart
	}
	defer src.close()
	return src.packed == nil
}

// folders are where a stream may have been moved or copied to.
func (f *Follower) folders(s *stream) []string {
	dirs := append([]string{s.dir, filepath.Dir(s.path), filepath.Dir(reals(s.path))}, f.o.Rotated...)
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// holding is how much of a stream's content a file has.
type holding int

const (
	holdsUnknown holding = iota // it cannot be read now
	holdsOther                  // other content
	holdsStart                  // the same from the beginning, but less than what was read
	holdsAll                    // all that was read, and maybe more
)

// holds compares a file with what is known of a stream. With holdsAll the source
// is open, at the caller's charge.
func (f *Follower) holds(path string, s *stream) (holding, *source) {
	src, _, err := openSource(path)
	if err != nil {
		return holdsUnknown, nil
	}
	h := compare(src, s)
	if h == holdsAll {
		return h, src
	}
	src.close()
	return h, nil
}

func compare(src *source, s *stream) holding {
	head, err := src.head(headMost)
	switch {
	case err != nil && !errors.Is(err, errIncomplete):
		return holdsUnknown
	case !s.mayBegin(head):
		return holdsOther
	case len(head) < s.head.length && s.sure(len(head)):
		return holdsStart
	case len(head) < s.head.length:
		return holdsOther
	case s.tail.length == 0:
		return holdsAll
	}
	b := make([]byte, s.tail.length)
	n, err := src.readAt(b, s.offset-int64(s.tail.length))
	switch {
	case n == len(b) && s.tail.is(b):
		return holdsAll
	case n == len(b):
		return holdsOther
	case errors.Is(err, io.EOF), errors.Is(err, errIncomplete):
		return holdsStart
	}
	return holdsUnknown
}

// search looks for the rest of a stream that is lost.
func (f *Follower) search(s *stream, now time.Time) {
	short := false
	for _, path := range f.candidates(s) {
		h, src := f.holds(path, s)
		if h != holdsAll {
			// It may be written still; else everything of it was read.
			short = short || h == holdsStart
			continue
		}
		kind := "copied"
		if src.packed != nil {
			kind = "compressed"
		}
		f.m.rotations.WithLabelValues(s.pattern, kind).Inc()
		f.o.Logger.Info().Str("path", s.path).Str("file", path).Int64("position", s.from.offset).Msg("going on in a copy of the file")
		s.source, s.state, s.still, s.behind, s.trouble = src, copied, now, true, ""
		s.place(path)
		s.soon(now)
		f.closeSome(s)
		return
	}
	since := now.Sub(s.searched)
	if since < f.o.Settle || since < f.o.SearchFor && !short {
		f.rest(s, now)
		return
	}
	if !short {
		f.m.lost.WithLabelValues(s.pattern).Inc()
		f.o.Logger.Warn().Str("path", s.path).Int64("position", s.cursor.offset).
			Msg("a file is gone and no copy of it is there; lines that were not read are lost")
	}
	s.state, s.rested, s.behind, s.held, s.from = done, now.UnixMicro(), false, false, s.cursor
	f.dirty, f.forgetful = true, true
}

// candidates are the files that may be a copy of the stream, the newest first.
func (f *Follower) candidates(s *stream) []string {
	type candidate struct {
		path    string
		changed time.Time
	}
	var all []candidate
	for _, dir := range f.folders(s) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || familyOf(e.Name()) != s.family {
				continue
			}
			fi, err := e.Info()
			if err != nil {
				continue
			}
			id, _ := idOf(fi)
			if t := f.byID[id]; t != nil && t != s {
				continue // it is another's
			}
			all = append(all, candidate{filepath.Join(dir, e.Name()), fi.ModTime()})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.changed.Compare(a.changed) })
	paths := make([]string, len(all))
	for i, c := range all {
		paths[i] = c.path
	}
	return paths
}

// closeSome keeps the open files within their bound: it closes the one that was
// not used for longest, but none that no name leads to.
func (f *Follower) closeSome(keep *stream) {
	var oldest *stream
	open := 0
	for _, s := range f.streams {
		if s.source == nil {
			continue
		}
		open++
		if s != keep && !s.gone && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if open > f.o.MaxOpen && oldest != nil {
		oldest.close()
	}
}

// vanished reports whether a file is simply not there.
func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) }
