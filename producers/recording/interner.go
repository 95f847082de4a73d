package recording

import "penstock/schemas/event"

// interner gives equal strings one copy. It is bounded: a full table begins
// anew, which costs memory and changes no result.
type interner struct{ seen map[string]string }

const maxInterned = 1 << 17

func newInterner() *interner { return &interner{seen: make(map[string]string)} }

// bytes returns b as a string that shares nothing with b.
func (t *interner) bytes(b []byte) string {
	if s, ok := t.seen[string(b)]; ok {
		return s
	}
	return t.keep(string(b))
}

// string returns a copy of s that keeps nothing else alive.
func (t *interner) string(s string) string {
	if kept, ok := t.seen[s]; ok {
		return kept
	}
	return t.keep(string([]byte(s)))
}

func (t *interner) keep(s string) string {
	// The row of a longer one will be refused.
	if len(s) > event.MaxID {
		return s
	}
	if len(t.seen) >= maxInterned {
		clear(t.seen)
	}
	t.seen[s] = s
	return s
}
