package writes

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// File is the object that holds an owner's records.
const File = "writes"

// MaxRecord is the greatest payload of a record in bytes.
const MaxRecord = 1 << 20

// content is the bytes of one record: a splitmix64 stream from a seed.
type content struct{ x uint64 }

func newContent(owner string, number uint64) content {
	return content{xxhash.Sum64String(owner) ^ bits.ReverseBytes64(number)*0x9e3779b97f4a7c15}
}

func (c *content) next() uint64 {
	c.x += 0x9e3779b97f4a7c15
	z := c.x
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Fill sets dst to the first bytes of the owner's record of that number.
func Fill(dst []byte, owner string, number uint64) {
	c := newContent(owner, number)
	for len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, c.next())
		dst = dst[8:]
	}
	if len(dst) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], c.next())
		copy(dst, last[:])
	}
}

// matches reports whether a payload is what Fill makes.
func matches(payload []byte, owner string, number uint64) bool {
	c := newContent(owner, number)
	for len(payload) >= 8 {
		if binary.LittleEndian.Uint64(payload) != c.next() {
			return false
		}
		payload = payload[8:]
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], c.next())
	return bytes.Equal(payload, last[:len(payload)])
}

// link adds a record of a size to a chain over the sizes before it.
func link(chain uint64, size int64) uint64 {
	hi, lo := bits.Mul64(chain^uint64(size)^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	return hi ^ lo
}
