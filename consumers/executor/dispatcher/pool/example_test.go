package pool_test

import (
	"fmt"
	"time"

	"penstock/consumers/executor/dispatcher/pool"
)

// Two servers that take one request each at a time; the third request waits for the
// first to end.
func Example() {
	p, err := pool.New(pool.Options{Policy: pool.LL, Classes: []pool.Class{{Limit: 0.5, Penalty: 1}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var moved []pool.Placed
	var starts []pool.Start
	if moved, starts, err = p.SetServers(0, []pool.Server{{Name: "a", M: 1}, {Name: "b", M: 1}}, moved, starts); err != nil {
		fmt.Println(err)
		return
	}
	for id := uint64(1); id <= 3; id++ {
		var placed pool.Placed
		if placed, starts, err = p.Arrive(0, pool.Request{ID: id, Size: 2000}, starts); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(placed.ID, "at", placed.Server, "queued:", placed.Queued)
	}
	now := int64(80 * time.Millisecond)
	starts = p.Done(now, 1, pool.Outcome{OK: true, Service: 0.08}, starts)
	for _, s := range starts {
		fmt.Println(s.ID, "starts at", s.Server, "after", time.Duration(s.Waited))
	}
	fmt.Println(len(moved), "moved")
	// Output:
	// 1 at a queued: false
	// 2 at b queued: false
	// 3 at a queued: true
	// 1 starts at a after 0s
	// 2 starts at b after 0s
	// 3 starts at a after 80ms
	// 0 moved
}
