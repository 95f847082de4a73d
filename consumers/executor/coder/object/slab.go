package object

// slab is the memory of one segment: N frames and the strips in them. In the shared
// layout frames lie on end, as in the blob. In spread each begins a page: frames that
// begin at nearly the same place of different pages make processors take the stores to
// one for loads from another, which costs a fifth of the speed where parity is little. More
// frames than the first cache has ways would drive each other out of it, so these begin
// apart, each at a part of the page of its own.
type slab struct {
	layout Layout
	memory []byte
	strips [][]byte
	strip  int
	stride int // from one frame to the next
}

const (
	// page is what the processors' comparison of addresses goes by, and what the sets of
	// their caches repeat after.
	page      = 4096
	cacheLine = 64
	// ways is how many lines at one place of a page a processor's first cache holds.
	ways = 8
)

// fit makes the slab one of n strips of the given bytes. Memory grows and is kept, and
// so is what stands in it.
func (b *slab) fit(n int, strip int64) {
	b.strip = int(strip)
	b.stride = b.strip + TrailerBytes
	if b.layout == Spread {
		b.stride = (b.stride + page - 1) / page * page
		if n > ways {
			b.stride += page / n / cacheLine * cacheLine
		}
	}
	need := n * b.stride
	if cap(b.memory) < need {
		grown := make([]byte, need)
		copy(grown, b.memory[:cap(b.memory)])
		b.memory = grown
	}
	b.memory = b.memory[:need]
	if cap(b.strips) < n {
		b.strips = make([][]byte, n)
	}
	b.strips = b.strips[:n]
	for i := range b.strips {
		at := i * b.stride
		b.strips[i] = b.memory[at : at+b.strip : at+b.strip]
	}
}

// frames are count frames from first, of spread one. Their capacity ends with them.
func (b *slab) frames(first, count int) []byte {
	from := first * b.stride
	to := from + (count-1)*b.stride + b.strip + TrailerBytes
	return b.memory[from:to:to]
}

// rest is the memory of data from byte at to the end of its strip, or to limit.
func (b *slab) rest(at, limit int) []byte {
	i, from := at/b.strip, at%b.strip
	return b.strips[i][from:min(b.strip, from+limit-at)]
}

// move turns n bytes of data in strips of one length into such in n strips of another.
func (b *slab) move(bytes, n int, strip int64) {
	old := b.strip
	for at := old; at < bytes; at += old { // close up, from the front
		i := at / old
		copy(b.memory[at:], b.strips[i][:min(old, bytes-at)])
	}
	b.fit(n, strip)
	for i := (bytes - 1) / b.strip; i > 0; i-- { // move apart, from the back
		copy(b.strips[i], b.memory[i*b.strip:min((i+1)*b.strip, bytes)])
	}
}

// pad clears what follows n bytes in k data strips.
func (b *slab) pad(k, n int) {
	for limit := k * b.strip; n < limit; {
		r := b.rest(n, limit)
		clear(r)
		n += len(r)
	}
}

// seal writes the trailers and appends the checksums.
func (b *slab) seal(sums []uint64, identity uint64, index int) []uint64 {
	for i := range b.strips {
		f := b.frames(i, 1)
		trail(f, identity, index, i)
		sums = append(sums, sumOf(f))
	}
	return sums
}
