package follow

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"
)

const (
	// mostWatched bounds the folders that are watched.
	mostWatched = 1024
	// mostHints bounds the paths that are kept between two looks.
	mostHints = 4096
)

// hints are what the system says about changes. They only make looks come
// earlier: network folders have none, some get lost, and the folders beyond the
// bound are not watched.
type hints struct {
	wake chan struct{}

	watcher *fsnotify.Watcher // nil if the system has none
	watched map[string]bool
	tasks   sync.WaitGroup

	mu    sync.Mutex
	paths map[string]bool
	names bool // files came or went
}

func newHints(log zerolog.Logger) *hints {
	h := &hints{wake: make(chan struct{}, 1), watched: map[string]bool{}, paths: map[string]bool{}}
	w, err := fsnotify.NewBufferedWatcher(256)
	if err != nil {
		log.Info().Err(err).Msg("changes of files are not told; polling only")
		return h
	}
	h.watcher = w
	h.tasks.Go(h.listen)
	return h
}

func (h *hints) listen() {
	for {
		select {
		case e, ok := <-h.watcher.Events:
			if !ok {
				return
			}
			h.note(e)
		case _, ok := <-h.watcher.Errors: // too many at once: files are polled
			if !ok {
				return
			}
		}
	}
}

func (h *hints) note(e fsnotify.Event) {
	h.mu.Lock()
	if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		h.names = true
	}
	if len(h.paths) < mostHints {
		h.paths[e.Name] = true
	}
	h.mu.Unlock()
	h.stir()
}

// stir wakes the follower.
func (h *hints) stir() {
	select {
	case h.wake <- struct{}{}:
	default: // it is awake
	}
}

// take returns the paths that changed since the last time, and whether names
// did.
func (h *hints) take() (paths map[string]bool, names bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	names, h.names = h.names, false
	if len(h.paths) > 0 {
		paths, h.paths = h.paths, map[string]bool{}
	}
	return paths, names
}

// watch watches just these folders.
func (h *hints) watch(dirs map[string]bool) {
	if h.watcher == nil {
		return
	}
	for dir := range h.watched {
		if !dirs[dir] {
			_ = h.watcher.Remove(dir) // it may be gone
			delete(h.watched, dir)
		}
	}
	for dir := range dirs {
		if len(h.watched) >= mostWatched {
			return
		}
		if !h.watched[dir] && h.watcher.Add(dir) == nil {
			h.watched[dir] = true
		}
	}
}

func (h *hints) close() {
	if h.watcher != nil {
		_ = h.watcher.Close() // it ends either way
		h.tasks.Wait()
	}
}

// watched are the folders of the files and of the globs.
func (f *Follower) watched() map[string]bool {
	dirs := map[string]bool{}
	for _, p := range f.o.Paths {
		if p != stdinPath {
			dirs[filepath.Dir(p)] = true // one with a wildcard is not there
		}
	}
	for _, s := range f.streams {
		if s.active() && s.pipe == nil {
			dirs[s.dir] = true
			dirs[filepath.Dir(s.path)] = true
		}
	}
	return dirs
}
