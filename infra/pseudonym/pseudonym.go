package pseudonym

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/netip"
	"strings"
	"sync"
)

// ErrNoKey says that a hasher was asked for without a key. There is none then:
// hashes under an empty key could be undone by trying.
var ErrNoKey = errors.New("no key for pseudonyms")

// Length is the number of characters of a pseudonym.
const Length = 32

// Hasher makes pseudonyms under one key.
type Hasher struct{ states sync.Pool }

// state is what one computation needs; sum and text are its scratch.
type state struct {
	mac  hash.Hash
	in   []byte
	sum  [sha256.Size]byte
	text [Length]byte
}

// New returns a hasher under the key, which is copied. The error is ErrNoKey.
func New(key []byte) (*Hasher, error) {
	if len(key) == 0 {
		return nil, ErrNoKey
	}
	key = append([]byte(nil), key...)
	return &Hasher{states: sync.Pool{New: func() any {
		return &state{mac: hmac.New(sha256.New, key)}
	}}}, nil
}

// Text returns the pseudonym of a text, byte by byte as it is.
func (h *Hasher) Text(s string) string {
	st := h.states.Get().(*state)
	st.in = append(st.in[:0], s...)
	out := st.hash()
	h.states.Put(st)
	return out
}

// Address returns the pseudonym of a client's address. One client is one user
// however its address is written: IPv4 inside IPv6 is IPv4, and a zone does not
// count.
func (h *Hasher) Address(a netip.Addr) string {
	st := h.states.Get().(*state)
	st.in = a.Unmap().WithZone("").AppendTo(st.in[:0])
	out := st.hash()
	h.states.Put(st)
	return out
}

// Client returns the pseudonym of a client as a log names it: an address in any
// spelling, or a host name, of which case does not count.
func (h *Hasher) Client(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return h.Address(a)
	}
	return h.Text(strings.ToLower(host))
}

func (st *state) hash() string {
	st.mac.Reset()
	st.mac.Write(st.in)
	hex.Encode(st.text[:], st.mac.Sum(st.sum[:0])[:Length/2])
	return string(st.text[:])
}
