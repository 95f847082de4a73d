package dispatcher

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"penstock/schemas/control"
)

// A server that a table turns off gets nothing new: what waits for it is placed anew, what
// runs there runs to its end. When the table's time is over all are on again.
func TestTablesDrain(t *testing.T) {
	t.Parallel()
	var told []string
	w := begin(t, func(o *Options) {
		o.Switched = func(on []string) { told = append(told, strings.Join(on, "")) }
	}, zoneOf("z", "a", "b"), zoneOf("y", "c"))
	var all []*asked
	for range 6 {
		all = append(all, w.ask(Facts{}))
	}
	w.expect("a:1+1 b:1+1 c:1+1 ")
	off := table([]string{"a"}, map[string]float64{"z": 1, "y": 1, "unknown": 1}, "b", "c", "unknown")
	if err := w.Put(off, 7, began.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	w.expect("b:1+2 a:1+0 c:1+1 ")
	if st := w.State(); st.Zones[0].Servers[1].State != StateOff || st.Table.Epoch != 7 || st.Zones[1].Weight != 1 {
		t.Errorf("got %+v", st)
	}
	all[0].served(0)
	w.expect("b:1+2 c:1+1 ")
	if err := w.Put(table([]string{"c", "b"}, map[string]float64{"z": 1}, "a"), 8, began.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	w.expect("a:1+2 b:1+0 c:1+0 ") // zone y has nobody any more, so that its request moves
	if w.Expire(began.Add(time.Minute - 1)) {
		t.Error("it expires too early")
	}
	if !w.Expire(began.Add(time.Minute)) || w.Expire(began.Add(time.Hour)) || w.Table() != (Table{}) {
		t.Errorf("in force is %+v", w.Table())
	}
	w.expect("a:1+2 b:1+0 c:1+0 ") // what waits keeps its place
	if got := fmt.Sprint(told); got != "[abc bc a abc]" {
		t.Errorf("told %s", got)
	}
	for range 5 {
		a := w.next()
		if a == all[0] {
			a = w.next()
		}
		a.served(0)
	}
}

func TestTablesThatCannotBe(t *testing.T) {
	t.Parallel()
	w := begin(t, nil, zoneOf("z", "a", "b"))
	z := map[string]float64{"z": 1}
	for name, bad := range map[string]*control.ServersTable{
		"nobody known is on": table([]string{"a"}, z, "x"),
		"on and off":         table([]string{"a"}, z, "a", "b"),
		"no weight here":     table(nil, map[string]float64{"x": 1}, "a"),
		"all zero":           table(nil, map[string]float64{"z": 0}, "a"),
		"negative":           table(nil, map[string]float64{"z": -1}, "a"),
		"not a number":       table(nil, map[string]float64{"z": math.NaN()}, "a"),
	} {
		if err := w.Put(bad, 1, time.Time{}); !errors.Is(err, ErrTable) || w.Table().Epoch != 0 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
