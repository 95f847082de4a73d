package s3

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"penstock/infra/objectstore"
	"penstock/schemas/subject"
)

const (
	// ours is the folder of what isn't plain.
	ours = objectstore.Reserved
	// maxKey is the most bytes of a key that services take.
	maxKey = 1024
	// longest is the most bytes of an element of a key.
	longest = 200
	// hashed begins an element that is a hash; no escape does.
	hashed = "__"
)

// layout says which keys are whose. It is the prefix, empty or with its slash.
type layout string

func newLayout(prefix string) layout {
	if prefix == "" {
		return ""
	}
	return layout(prefix + "/")
}

func (l layout) docs() string              { return string(l) + ours + "/doc/" }
func (l layout) doc(owner string) string   { return l.docs() + element(owner) }
func (l layout) blobs(owner string) string { return string(l) + ours + "/blob/" + element(owner) + "/" }
func (l layout) probes() string            { return string(l) + ours + "/probe/" }

// blob is the key of a blob, be it ours or plain. The ETag is that which a plain
// one must have, if that is known.
func (l layout) blob(owner, id string) (key, etag string) {
	if etag, name, ok := plainName(id); ok {
		return l.plain(owner) + name, etag
	}
	return l.blobs(owner) + element(id), ""
}

// plain is the prefix of an owner's plain objects.
func (l layout) plain(owner string) string { return string(l) + plainElement(owner) + "/" }

// element writes a name as one element of a key.
func element(name string) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, min(len(name), longest)+16)
	for i := range len(name) {
		c := name[i]
		if verbatim(c) {
			b = append(b, c)
		} else {
			b = append(b, '_', digits[c>>4], digits[c&15])
		}
		if len(b) > longest {
			sum := sha256.Sum256([]byte(name))
			return hashed + hex.EncodeToString(sum[:])
		}
	}
	return string(b)
}

// name is the inverse of element. It returns false for a hash, and for what
// element wouldn't write; of that foreign is true.
func name(element string) (name string, foreign, ok bool) {
	if h, found := strings.CutPrefix(element, hashed); found {
		_, err := hex.DecodeString(h)
		return "", err != nil || len(h) != 2*sha256.Size || h != strings.ToLower(h), false
	}
	if element == "" || len(element) > longest {
		return "", true, false
	}
	b := make([]byte, 0, len(element))
	for i := 0; i < len(element); i++ {
		c := element[i]
		if verbatim(c) {
			b = append(b, c)
			continue
		}
		if c != '_' || i+2 >= len(element) {
			return "", true, false
		}
		hi, lo := strings.IndexByte("0123456789abcdef", element[i+1]), strings.IndexByte("0123456789abcdef", element[i+2])
		if hi < 0 || lo < 0 || verbatim(byte(hi<<4|lo)) {
			return "", true, false
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), false, true
}

func verbatim(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
}

// plainElement is the element under which an owner's plain objects lie.
func plainElement(owner string) string {
	if literal(owner) {
		return owner
	}
	return subject.Encode(owner)
}

// plainOwner is the inverse of plainElement; false for what is nobody's.
func plainOwner(element string) (string, bool) {
	if literal(element) {
		return element, len(element) <= objectstore.MaxOwner
	}
	if !strings.HasPrefix(element, "b64=") {
		return "", false
	}
	owner, err := subject.Decode(element)
	if err != nil || len(owner) > objectstore.MaxOwner || owner == "" || plainElement(owner) != element {
		return "", false
	}
	return owner, true
}

func literal(owner string) bool {
	return owner != "" && owner != "." && owner != ".." && utf8.ValidString(owner) &&
		!strings.ContainsFunc(owner, func(r rune) bool { return r == '/' || unicode.IsControl(r) }) &&
		!strings.HasPrefix(owner, "b64=") && !strings.HasPrefix(owner, ours)
}

// plainPrefix begins the ids of plain objects, which ids of blobs can't.
const plainPrefix = "plain/"

// plainID is the id of a plain object: its name, and the ETag by which a
// replacement is noticed.
func plainID(name, etag string) string {
	return plainPrefix + base64.RawURLEncoding.EncodeToString([]byte(etag)) + "/" + name
}

func plainName(id string) (etag, name string, ok bool) {
	rest, ok := strings.CutPrefix(id, plainPrefix)
	if !ok {
		return "", "", false
	}
	coded, name, ok := strings.Cut(rest, "/")
	b, err := base64.RawURLEncoding.DecodeString(coded)
	return string(b), name, ok && err == nil
}

// nameable reports whether a plain key's rest is the name of an object, by the
// rules that every store has for them.
func nameable(name string) bool { return utf8.ValidString(name) && objectstore.CheckName(name) == nil }
