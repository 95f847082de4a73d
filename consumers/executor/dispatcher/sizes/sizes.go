package sizes

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

const (
	// MaxClasses is how many classes have a mean of their own.
	MaxClasses = 1024
	// MaxEntries is the greatest length of the table.
	MaxEntries = 1 << 24
	// shards is how many tables there are, each with a lock of its own.
	shards = 16
	// pathFollow and classFollow are the weights of one answer in a mean.
	pathFollow, classFollow = 0.2, 0.01
)

// Options are those of Sizes.
type Options struct {
	// Default is the size of an answer of which nothing is known, in bytes. Defaults to
	// 8192.
	Default int64
	// Entries is how many paths are remembered. Defaults to 65,536.
	Entries int
}

// Sizes remembers how large answers were. Make it with New.
type Sizes struct {
	start   float64
	tables  []table
	all     mean
	mu      sync.Mutex // of adding a class
	classes atomic.Pointer[map[string]*mean]
	crowded atomic.Int64
}

// State is what Sizes hold.
type State struct {
	Entries int   // paths
	Evicted int64 // paths that had to give way since the start
	Classes int   // classes with a mean of their own
	Crowded int64 // answers of classes that had none, for there were too many
}

// New returns Sizes that know nothing. The error wraps ErrOptions and names the field.
func New(o Options) (*Sizes, error) {
	if o.Default == 0 {
		o.Default = 8192
	}
	if o.Entries == 0 {
		o.Entries = 65536
	}
	switch {
	case o.Default < 0:
		return nil, fmt.Errorf("default: got %d, expected bytes: %w", o.Default, ErrOptions)
	case o.Entries < 1 || o.Entries > MaxEntries:
		return nil, fmt.Errorf("entries: got %d, expected 1 to %d: %w", o.Entries, MaxEntries, ErrOptions)
	}
	n := min(shards, o.Entries)
	s := &Sizes{start: float64(o.Default), tables: make([]table, n)}
	for i := range s.tables {
		size := o.Entries / n
		if i < o.Entries%n {
			size++
		}
		s.tables[i].init(size)
	}
	s.classes.Store(&map[string]*mean{})
	return s, nil
}

// Of returns the bytes of a request of a class whose path has this key: those of its body,
// if they are known (0 or more), and those expected of the answer. It allocates nothing.
func (s *Sizes) Of(class string, key uint64, body int64) int64 {
	return round(float64(max(0, body)) + s.answer(class, key))
}

func (s *Sizes) answer(class string, key uint64) float64 {
	id := identify(class, key)
	if v, ok := s.table(id).get(id); ok {
		return v
	}
	if m := (*s.classes.Load())[class]; m != nil {
		if v, ok := m.get(); ok {
			return v
		}
	}
	if v, ok := s.all.get(); ok {
		return v
	}
	return s.start
}

// Learn notes the size of an answer in bytes. A negative one is no size and left out.
func (s *Sizes) Learn(class string, key uint64, answer int64) {
	if answer < 0 {
		return
	}
	v := float64(answer)
	id := identify(class, key)
	s.table(id).put(id, v)
	s.all.add(v)
	if m := s.class(class); m != nil {
		m.add(v)
	} else {
		s.crowded.Add(1)
	}
}

// class is the mean of a class, made if need be; nil if there are too many.
func (s *Sizes) class(name string) *mean {
	if m := (*s.classes.Load())[name]; m != nil {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have := *s.classes.Load()
	if m := have[name]; m != nil || len(have) >= MaxClasses {
		return m
	}
	more := make(map[string]*mean, len(have)+1)
	for k, m := range have {
		more[k] = m
	}
	m := new(mean)
	more[name] = m
	s.classes.Store(&more)
	return m
}

// State tells what is held at the moment.
func (s *Sizes) State() State {
	st := State{Classes: len(*s.classes.Load()), Crowded: s.crowded.Load()}
	for i := range s.tables {
		n, evicted := s.tables[i].state()
		st.Entries += n
		st.Evicted += evicted
	}
	return st
}

func (s *Sizes) table(id uint64) *table { return &s.tables[(id>>32)%uint64(len(s.tables))] }

// identify makes one key of a class and a path's key; that two of them meet is as likely as
// that two paths' keys do.
func identify(class string, key uint64) uint64 {
	h := xxhash.Sum64String(class) + key*0x9e3779b97f4a7c15
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// round returns whole bytes, at most what an int64 holds.
func round(v float64) int64 {
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v + 0.5)
}

// mean is that of the last hundred or so, of all while there are fewer.
type mean struct {
	mu sync.Mutex
	n  int
	v  float64
}

func (m *mean) add(v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n < math.MaxInt32 {
		m.n++
	}
	m.v += max(classFollow, 1/float64(m.n)) * (v - m.v)
}

func (m *mean) get() (float64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.v, m.n > 0
}
