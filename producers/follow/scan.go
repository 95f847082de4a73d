package follow

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// scanRest is how many times longer than a scan took the next one waits.
	scanRest = 20
	// fullEvery is after how many scans folders are read although they have not
	// changed.
	fullEvery = 30
	// coarse is how far a file's time may be behind the clock.
	coarse = time.Second
)

// family is a file and what was rotated from it, in one folder.
type family struct{ dir, name string }

// folder is what is known of one from the last look.
type folder struct {
	changed, looked time.Time
}

// scan looks at all globs, and for rotated files of which nothing was ever read
// in the folders of what is followed.
func (f *Follower) scan() {
	began := f.o.Clock.Now()
	f.scans++
	for _, pattern := range f.o.Paths {
		if pattern == stdinPath {
			continue
		}
		paths, err := filepath.Glob(pattern) // fails for bad patterns only
		if err != nil {
			f.o.Logger.Error().Err(err).Str("pattern", pattern).Msg("files cannot be listed")
		}
		for _, path := range paths {
			f.see(pattern, path, began)
		}
		// Whoever mistypes a path would wait for ever without a word.
		if len(paths) == 0 && err == nil && f.scans == 1 {
			f.o.Logger.Warn().Str("path", pattern).Msg("no file matches; waiting for one")
		}
	}
	f.sweep(began)
	f.first = false
	f.scanned = began.UnixMicro()
	if f.forgetful {
		f.forget()
	}
	f.hints.watch(f.watched())
	took := f.o.Clock.Now().Sub(began)
	f.scanDue = began.Add(max(f.o.ScanEvery, scanRest*took))
}

// see deals with a file that a glob leads to.
func (f *Follower) see(pattern, path string, now time.Time) {
	fi, err := os.Stat(path)
	if err != nil {
		if !vanished(err) {
			f.passOver(path, err)
		}
		return
	}
	if !fi.Mode().IsRegular() {
		f.passOver(path, errNotRegular)
		return
	}
	id, _ := idOf(fi)
	if s := f.byID[id]; s != nil && f.recognise(s, path, fi, now) {
		s.seen = f.scans
		if s.state == moved && s.path != path && !leadsTo(s.path, id) {
			s.path, s.state = path, live
			s.place(reals(path))
			f.dirty = true
		}
		return
	}
	k := known{pattern: pattern, path: path, real: reals(path), id: id}
	if rotatedName(filepath.Base(k.real)) && f.isCopy(k.real, fi, now) {
		return
	}
	f.begin(k, fi, now)
}

// passOver says once that a path is not followed.
func (f *Follower) passOver(path string, err error) {
	if f.passed[path] == err.Error() {
		return
	}
	f.passed[path] = err.Error()
	f.m.troubles.WithLabelValues("").Inc()
	f.o.Logger.Warn().Err(err).Str("path", path).Msg("passed over")
}

// recognise reports whether a file is still the content that its inode had; a
// file that is done and has grown is read on. One that is not done is compared
// where it is read.
func (f *Follower) recognise(s *stream, path string, fi os.FileInfo, now time.Time) bool {
	if s.state != done || fi.Size() == s.size && fi.ModTime().Equal(s.changed) {
		return true
	}
	h, src := f.holds(path, s)
	switch h {
	case holdsUnknown:
		return true
	case holdsOther:
		f.unname(s)
		return false
	case holdsAll:
		src.close()
	case holdsStart:
	}
	s.place(reals(path))
	s.size, s.changed = fi.Size(), fi.ModTime()
	if h == holdsAll && src.packed == nil && fi.Size() > s.offset {
		f.o.Logger.Info().Str("path", s.real).Msg("a file that was done is written again")
		s.state, s.behind, s.still, s.base = moved, true, now, s.cursor.lines
		s.soon(now)
		f.dirty = true
	}
	return true
}

// begin follows a file from its beginning, or from its end at the very first
// start if the options say so.
func (f *Follower) begin(k known, fi os.FileInfo, now time.Time) {
	s := newStream(k, now)
	s.since = f.sinceOf(family{s.dir, s.family})
	s.seen = f.scans
	if f.first && f.o.FromEnd {
		f.fromEnd(s, fi)
	}
	f.streams = append(f.streams, s)
	f.byID[s.id] = s
	f.dirty = true
	f.o.Logger.Info().Str("path", s.path).Int64("bytes", fi.Size()).Msg("file is followed")
}

// fromEnd passes over what a file holds already.
func (f *Follower) fromEnd(s *stream, fi os.FileInfo) {
	src, _, err := openSource(s.real)
	if err != nil {
		return // it is read from its beginning once it can be
	}
	defer src.close()
	head, _ := src.head(headMost)
	s.sees(head)
	if src.packed != nil {
		s.state, s.behind, s.rested = done, false, f.o.Clock.Now().UnixMicro()
		s.size, s.changed = fi.Size(), fi.ModTime()
		return
	}
	s.cursor.offset = fi.Size()
	if fi.Size() > 0 {
		var last [1]byte
		n, _ := src.readAt(last[:], fi.Size()-1)
		s.cursor.skipping = n == 1 && last[0] != '\n'
	}
	s.from, s.offset = s.cursor, s.cursor.offset
}

// sinceOf is from when on files of a family are ours.
func (f *Follower) sinceOf(fam family) int64 {
	for _, s := range f.streams {
		if s.family == fam.name && s.dir == fam.dir {
			return s.since
		}
	}
	return f.scanned - coarse.Microseconds()
}

// sweep looks for rotated files that came and went between two looks: members of
// a family that is followed that were changed since, and are no copy of anything.
func (f *Follower) sweep(now time.Time) {
	since := map[family]int64{}
	pattern := map[family]string{}
	dirs := map[string]bool{}
	for _, s := range f.streams {
		if s.pipe != nil {
			continue
		}
		for _, dir := range append([]string{s.dir}, f.o.Rotated...) {
			fam := family{dir, s.family}
			since[fam], pattern[fam] = max(since[fam], s.since), s.pattern
			dirs[dir] = true
		}
	}
	if f.scans%fullEvery == 0 {
		f.tidy(dirs)
	}
	for dir := range dirs {
		if !f.changed(dir, now) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			fam := family{dir, familyOf(e.Name())}
			if from, ok := since[fam]; ok && fam.name != e.Name() && e.Type().IsRegular() {
				f.missed(filepath.Join(dir, e.Name()), pattern[fam], from, now)
			}
		}
	}
}

// tidy forgets what was noted of paths that are gone, refused files among them.
func (f *Follower) tidy(dirs map[string]bool) {
	maps.DeleteFunc(f.dirs, func(dir string, _ *folder) bool { return !dirs[dir] })
	gone := func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil && vanished(err)
	}
	maps.DeleteFunc(f.copies, func(path string, _ looked) bool { return gone(path) })
	maps.DeleteFunc(f.passed, func(path, _ string) bool { return gone(path) })
	for _, s := range f.streams {
		if s.state == refused && !leadsTo(s.real, s.id) && f.findID(s) == "" {
			f.unname(s)
			s.state, s.rested = done, f.o.Clock.Now().UnixMicro()
			f.dirty, f.forgetful = true, true
		}
	}
}

// changed reports whether names in a folder may have changed since the last look.
// Its time is coarse, so that a folder that has just changed is looked at again.
func (f *Follower) changed(dir string, now time.Time) bool {
	fi, err := os.Stat(dir)
	if err != nil {
		return false
	}
	k := f.dirs[dir]
	if k != nil && k.changed.Equal(fi.ModTime()) && k.looked.Sub(k.changed) > 2*time.Second && f.scans%fullEvery != 0 {
		return false
	}
	f.dirs[dir] = &folder{changed: fi.ModTime(), looked: now}
	return true
}

// missed deals with a rotated file.
func (f *Follower) missed(path, pattern string, since int64, now time.Time) {
	fi, err := os.Lstat(path)
	if err != nil {
		return // it has gone on
	}
	id, _ := idOf(fi)
	if s := f.byID[id]; s != nil && f.recognise(s, path, fi, now) {
		return
	}
	if fi.ModTime().UnixMicro() < since || fi.Size() == 0 {
		return
	}
	if f.isCopy(path, fi, now) {
		if _, known := f.copies[path]; !known {
			delete(f.dirs, filepath.Dir(path)) // to be looked at again
		}
		return
	}
	f.m.rotations.WithLabelValues(pattern, "missed").Inc()
	f.begin(known{pattern: pattern, path: path, real: path, id: id, state: moved}, fi, now)
}

// looked is a file that was compared with all streams.
type looked struct {
	id      fileID
	size    int64
	changed time.Time
}

// isCopy reports whether a rotated file is, or may become, a copy of content that
// is known: then it is not read as one of its own.
func (f *Follower) isCopy(path string, fi os.FileInfo, now time.Time) bool {
	id, _ := idOf(fi)
	l := looked{id, fi.Size(), fi.ModTime()}
	if f.copies[path] == l {
		return true
	}
	src, _, err := openSource(path)
	if err != nil {
		if !vanished(err) {
			f.passOver(path, err)
		}
		return true // to be looked at again
	}
	head, err := src.head(headMost)
	src.close()
	settled := now.Sub(fi.ModTime()) > f.o.Settle
	if err != nil && !errors.Is(err, errIncomplete) || len(head) == 0 {
		return true // it is being written, or empty
	}
	for _, s := range f.streams {
		if s.family != familyOf(filepath.Base(path)) {
			continue
		}
		if f.isCopyNow(s, head) {
			return true // what is read of it there shows later
		}
		if !s.mayBegin(head) {
			continue
		}
		if len(head) < s.head.length {
			if !settled || s.sure(len(head)) {
				return true
			}
			continue
		}
		h, src := f.holds(path, s)
		if src != nil {
			src.close()
		}
		if h == holdsAll || h == holdsStart && settled {
			f.copies[path] = l
		}
		if h != holdsOther {
			return true // with holdsStart it is being written, or has less
		}
	}
	delete(f.copies, path)
	return false
}

// isCopyNow reports whether a file that begins with the bytes may be a copy of
// what a stream's file holds at this moment, whatever is known of the stream. A
// copy has no more than its file.
func (f *Follower) isCopyNow(s *stream, head []byte) bool {
	if !s.active() || s.id == none {
		return false
	}
	src := s.source
	if src == nil {
		var err error
		if src, err = f.openAgain(s); err != nil {
			return false
		}
		defer src.close()
	}
	now, err := src.head(headMost)
	if err != nil {
		return false
	}
	if s.offset == 0 {
		s.sees(now)
	}
	return bytes.HasPrefix(now, head)
}

// forget drops the oldest of the streams that are done and that no glob leads to,
// beyond KeepDone. Files of their families that changed before are not looked at
// any more.
func (f *Follower) forget() {
	f.forgetful = false
	var old []*stream
	for _, s := range f.streams {
		if s.state == done && s.seen != f.scans {
			old = append(old, s)
		}
	}
	if len(old) <= f.o.KeepDone {
		return
	}
	slices.SortFunc(old, func(a, b *stream) int { return int(min(max(a.rested-b.rested, -1), 1)) })
	drop := map[*stream]bool{}
	until := map[family]int64{}
	for _, s := range old[:len(old)-f.o.KeepDone] {
		drop[s] = true
		f.unname(s)
		until[family{s.dir, s.family}] = s.rested
	}
	f.streams = slices.DeleteFunc(f.streams, func(s *stream) bool { return drop[s] })
	for _, s := range f.streams {
		s.since = max(s.since, until[family{s.dir, s.family}])
	}
	f.dirty = true
}
