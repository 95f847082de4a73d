package dir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
)

// made remembers of folders that all above them are on disk, so that not every Put has
// to see to that. A folder that was removed and made again, by another process too, is
// another one; as long as it is the same none above it can have been removed.
type made struct {
	mu    sync.Mutex
	known map[string]identity
}

// mostMade bounds what is remembered.
const mostMade = 1 << 14

func (m *made) has(folder string, id identity) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.known[folder]
	return ok && have == id
}

func (m *made) add(folder string, id identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= mostMade {
		m.known = make(map[string]identity)
	}
	m.known[folder] = id
}

func (m *made) remove(folder string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, folder)
}

// settle puts on disk that a folder has a new name in it, and the folders above, since
// another Put may have made one of them and not be there yet. One that is gone again
// tells that the blob was deleted.
func (o *opened) settle(folder string) error {
	id, can, err := o.syncAndName(folder)
	if errors.Is(err, fs.ErrNotExist) {
		can, err = false, nil
	}
	if err != nil || can && o.made.has(folder, id) {
		return err
	}
	for above := folder; above != "."; {
		above = path.Dir(above)
		if err := o.sync(above); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if can {
		o.made.add(folder, id)
	}
	return nil
}

// syncAndName puts a folder on disk and tells which one it is, if that can be told.
func (o *opened) syncAndName(folder string) (id identity, can bool, err error) {
	f, err := o.root.Open(folder)
	if err != nil {
		return id, false, err
	}
	id, can = identify(f)
	return id, can, errors.Join(f.Sync(), f.Close())
}

func (o *opened) sync(folder string) error {
	f, err := o.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// identify tells which folder an open one is.
func identify(f *os.File) (id identity, can bool) {
	c, err := f.SyscallConn()
	if err != nil {
		return id, false
	}
	if err := c.Control(func(fd uintptr) { id, can = identityOf(int(fd)) }); err != nil { //nolint:gosec // G115: a descriptor is small
		return id, false
	}
	return id, can
}
