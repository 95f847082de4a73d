package assign

// amount is an item's load at one of its slots.
func (f *flow) amount(i, slot int32) int64 {
	a := f.at[i]
	if a >= 0 {
		if a == slot {
			return f.load[i]
		}
		return 0
	}
	return f.shares[-1-a][slot-f.off[i]]
}

// split reports whether an item is at more than one site.
func (f *flow) split(i int) bool { return f.at[i] < 0 }

// shift takes an amount of an item from one slot to another.
func (f *flow) shift(a arc, amount int64) {
	i := a.item
	to := f.off[i] + int32(a.to)
	if f.at[i] >= 0 {
		if amount == f.load[i] {
			f.at[i] = to
			f.offer(i, to, true)
			return
		}
		f.part(i)
	}
	k := f.at[i]
	share := f.shares[-1-k]
	came := share[a.to] == 0
	share[a.from] -= amount
	share[a.to] += amount
	if share[a.to] == f.load[i] {
		f.at[i] = to
		f.free = append(f.free, -1-k)
	}
	if came {
		f.offer(i, to, true)
	}
}

// part gives a whole item shares.
func (f *flow) part(i int32) {
	slots := int(f.off[i+1] - f.off[i])
	var k int32
	if last := len(f.free) - 1; last >= 0 {
		k = f.free[last]
		f.free = f.free[:last]
	} else {
		k = int32(len(f.shares))
		f.shares = append(f.shares, nil)
	}
	share := f.shares[k]
	if cap(share) < slots {
		share = make([]int64, slots)
	}
	share = share[:slots]
	clear(share)
	share[f.at[i]-f.off[i]] = f.load[i]
	f.shares[k], f.at[i] = share, -1-k
}

// A heap has its least key first; of equal ones, the lesser item.

func arcBefore(a, b *arc) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.item < b.item
}

func siftUp(h []arc) {
	i := len(h) - 1
	e := h[i]
	for i > 0 {
		up := (i - 1) / 2
		if !arcBefore(&e, &h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func siftDown(h []arc, i int) {
	if len(h) == 0 {
		return
	}
	e := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && arcBefore(&h[c+1], &h[c]) {
			c++
		}
		if !arcBefore(&h[c], &e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
}
