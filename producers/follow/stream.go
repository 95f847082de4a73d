package follow

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// state is where a stream stands.
type state uint8

const (
	// live: its path leads to it.
	live state = iota
	// moved: it was renamed or deleted, and is read where it went.
	moved
	// lost: other content lies where it was, and its rest is looked for.
	lost
	// copied: its rest is read from a copy, compressed or not.
	copied
	// refused: none of its first lines could be read; left alone until the next
	// start.
	refused
	// done: read to its end, and gone.
	done
)

func (s state) String() string {
	return [...]string{"live", "moved", "lost", "copied", "refused", "done"}[s]
}

// stream is the content of one log file, whatever it is called by now.
type stream struct {
	known

	dir    string // of the real path
	family string
	tally  *tally
	source *source // nil while it is closed
	pipe   *pipe   // of standard input

	headBytes []byte // what head is of; after a start, and once done, the first of it
	tailBytes []byte // what tail is of; nil if unknown
	parser    LineParser
	sampled   int   // bytes that the parser was asked with in vain
	base      int64 // lines at the start of this process
	cursor    spot
	held      bool  // parts of a row are held; from stays where they begin
	failed    error // of the first line, until one is a row

	size     int64     // when last looked at; of content if it is plain
	changed  time.Time // modification time then
	behind   bool      // there are lines that were not read
	checked  int64     // µs: when it was seen to have no more
	due      time.Time // when to look again
	wait     time.Duration
	turned   time.Time // when last looked at
	still    time.Time // since when nothing was new
	searched time.Time // since when it is lost
	trouble  string    // why it cannot be opened
	used     uint64    // for closing what was not used for longest
	seen     uint64    // the last scan that a glob led to it in
	gone     bool      // no name leads to it any more
}

func newStream(k known, now time.Time) *stream {
	s := &stream{known: k, cursor: k.from, base: k.from.lines, headBytes: k.start, behind: true, still: now}
	s.place(k.real)
	return s
}

// place notes where the content lies now.
func (s *stream) place(path string) {
	s.real, s.dir, s.family = path, filepath.Dir(path), familyOf(filepath.Base(path))
}

// active reports whether there may be more to read.
func (s *stream) active() bool { return s.state != done && s.state != refused }

// close closes the file, if it is open.
func (s *stream) close() {
	if s.source != nil {
		s.source.close()
		s.source = nil
	}
}

// restart makes s the stream of other content at the same place, and returns the
// one of the content before.
func (s *stream) restart(now time.Time) (before *stream) {
	old := *s
	old.source, old.parser = nil, s.parser
	old.id, old.state, old.searched, old.behind = none, lost, now, true
	old.due, old.wait = now, 0
	fresh := newStream(known{pattern: s.pattern, path: s.path, real: s.real, id: s.id, since: s.since, state: s.state}, now)
	fresh.source, fresh.used = s.source, s.used
	*s = *fresh
	return &old
}

// took notes that the bytes up to the next spot are dealt with.
func (s *stream) took(next spot, held bool) {
	s.cursor = next
	if !held { // otherwise from stays before the first part that is held
		s.from = next
	}
	s.held = held
	if next.offset > s.offset {
		s.offset, s.within = next.offset, 0
	}
}

// repeated reports whether what ends at the offset was published before the
// start: it is read again for the sake of parts of lines only.
func (s *stream) repeated(end int64) bool { return end <= s.offset }

// consumed notes the last bytes before the cursor.
func (s *stream) consumed(b []byte) {
	if len(b) == 0 {
		return
	}
	if len(b) < tailMost && len(s.tailBytes) > 0 {
		b = append(bytes.Clone(s.tailBytes), b...)
	}
	s.tailBytes = append(s.tailBytes[:0], b[max(0, len(b)-tailMost):]...)
	if s.cursor.offset == s.offset {
		s.tail = fingerprintOf(s.tailBytes)
	}
}

// sees compares the content's first bytes with the known ones, and takes note of
// more. False: it is other content.
func (s *stream) sees(head []byte) bool {
	if !s.head.begins(head) {
		return false
	}
	if len(head) > s.head.length {
		s.head = fingerprintOf(head)
	}
	if len(s.headBytes) < s.head.length {
		s.headBytes = bytes.Clone(head[:s.head.length])
		s.start = s.headBytes[:min(len(s.headBytes), startMost)]
	}
	return true
}

// mayBegin reports whether the stream's content could be what begins with the
// bytes, all that there is so far.
func (s *stream) mayBegin(head []byte) bool {
	n := min(len(head), len(s.headBytes))
	if len(head) == 0 || !s.telling() || !bytes.Equal(head[:n], s.headBytes[:n]) {
		return false // where nothing is known anything could follow
	}
	return len(head) < s.head.length || s.head.begins(head)
}

// telling reports whether enough is known of the stream to find it again.
func (s *stream) telling() bool { return s.offset > 0 || s.head.length >= weakHead }

// sure reports whether so many bytes can be compared one by one.
func (s *stream) sure(n int) bool { return n <= len(s.headBytes) }

// later waits longer the longer there is nothing new.
func (s *stream) later(now time.Time, least, most time.Duration) {
	s.wait = min(max(2*s.wait, least), most)
	s.due = now.Add(s.wait)
}

func (s *stream) soon(now time.Time) { s.wait, s.due = 0, now }

// reals are the path and where its symbolic links lead.
func reals(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

// leadsTo reports whether the path leads to the file, or may do so: what cannot
// be looked at now is no other file.
func leadsTo(path string, id fileID) bool {
	fi, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	got, _ := idOf(fi)
	return got == id
}
