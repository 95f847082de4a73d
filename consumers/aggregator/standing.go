package aggregator

import (
	"fmt"
	"strings"
	"sync"
)

// standing is how a partition stands, for whoever asks whether this process does
// its work.
type standing struct {
	mu      sync.Mutex
	doing   string // working, or what stands in its place; "" before the start
	trouble string // what the bus does not answer, "" if nothing
}

// working is a partition that is read and added up, or rightly another's.
const working = "works"

// Waiting says, partition by partition, what keeps the aggregator from its
// work; it is empty if nothing does. A partition that the advice gives to another
// process keeps nobody waiting. It is safe from any goroutine, before Run too.
func (a *Aggregator) Waiting() string {
	var out []string
	for i, p := range a.opts.Partitions {
		s := &a.standing[i]
		s.mu.Lock()
		doing, trouble := s.doing, s.trouble
		s.mu.Unlock()
		switch {
		case trouble != "":
			out = append(out, fmt.Sprintf("partition %d: %s", p, trouble))
		case doing == "":
			out = append(out, fmt.Sprintf("partition %d: has not begun", p))
		case doing != working:
			out = append(out, fmt.Sprintf("partition %d: %s", p, doing))
		}
	}
	return strings.Join(out, "; ")
}

func (w *worker) does(what string) {
	w.standing.mu.Lock()
	defer w.standing.mu.Unlock()
	w.standing.doing = what
}

// suffers notes what is tried again and again; "" when it has come to an end.
func (w *worker) suffers(what string) {
	w.standing.mu.Lock()
	defer w.standing.mu.Unlock()
	w.standing.trouble = what
}

// standBy notes that the partition is another's. While nobody knows whose it is,
// that is no work done.
func (w *worker) standBy() {
	if k, ok := w.advice.(interface{ Known() bool }); ok && !k.Known() {
		w.does("does not know yet who claims what")
		return
	}
	w.does(working)
	w.suffers("")
}
