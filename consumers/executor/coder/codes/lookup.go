package codes

import (
	"fmt"
	"math"
	"time"

	"penstock/consumers/executor/coder/queue"
	"penstock/schemas/control"
)

// table is a table as it is looked up. It never changes.
type table struct {
	coding control.CodingTable
	epoch  uint64
	until  time.Time // zero: for ever
	ops    [queue.Ops]lookup
}

// lookup is that of one operation.
type lookup struct {
	k, n   []float64                     // falling or staying
	top    [control.MaxCodingK + 1]uint8 // the most n for each k, by r_max
	mb     float64                       // the size that k and n are for; 0: any
	greedy bool
	hedge  time.Duration
}

// newTable checks a table and prepares its look-up. The error wraps ErrTable.
func newTable(t *control.CodingTable, epoch uint64, until time.Time) (*table, error) {
	checked, err := check(t)
	if err != nil {
		return nil, err
	}
	out := &table{coding: *checked, epoch: epoch, until: until}
	out.ops[queue.Read] = newLookup(checked.Policy, &checked.Read)
	out.ops[queue.Write] = newLookup(checked.Policy, &checked.Write)
	return out, nil
}

// check sends a table through the codec of commands, which knows all its rules, and
// returns a copy that is nobody else's.
func check(t *control.CodingTable) (*control.CodingTable, error) {
	at := time.Unix(0, 0).UTC()
	body, err := control.Encode(control.Command{
		Version: 1, Kind: control.Coding, Scope: "check", Epoch: 1, Mode: control.Act, TTL: "1s",
		Window: control.Window{Start: at, End: at.Add(time.Second)}, Reason: control.Reason{Code: "check"}, Coding: t,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	c, err := control.DecodeCommand(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	return c.Coding, nil
}

func newLookup(p control.CodingPolicy, c *control.CodingCodes) lookup {
	l := lookup{k: c.K, n: c.N, mb: c.MB, greedy: p == control.CodingGreedy}
	if p == control.CodingHedge {
		l.hedge = time.Duration(c.HedgeUS) * time.Microsecond
	}
	for k := range l.top {
		// As threshold.Table.Code rounds: 1.1·10 is 11.
		l.top[k] = uint8(min(control.MaxCodingN, math.Floor(c.RMax*float64(k)+1e-9)))
	}
	return l
}

// code is the code at a smoothed backlog of q with so many connections idle.
func (l *lookup) code(q float64, idle int) queue.Code {
	var k, n int
	if l.greedy {
		k, n = max(1, min(len(l.k)+1, idle)), min(len(l.n)+1, idle)
	} else {
		k, n = 1+above(l.k, q), 1+above(l.n, q)
	}
	return queue.Code{N: max(k, min(n, int(l.top[k]))), K: k, Hedge: l.hedge}
}

// sized is a code for a request of so many bytes, see Chooser.Sized.
func (l *lookup) sized(c queue.Code, bytes int64) queue.Code {
	if l.mb == 0 || bytes <= 0 {
		return c
	}
	k := int(math.Round(float64(c.K) * math.Sqrt(float64(bytes)/1e6/l.mb)))
	k = max(1, min(k, len(l.k)+1))
	n := int(math.Round(float64(c.N) * float64(k) / float64(c.K)))
	return queue.Code{N: max(k, min(n, len(l.n)+1, int(l.top[k]))), K: k, Hedge: c.Hedge}
}

// above counts the thresholds above q.
func above(h []float64, q float64) int {
	lo, hi := 0, len(h)
	for lo < hi {
		if m := int(uint(lo+hi) / 2); q < h[m] {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
