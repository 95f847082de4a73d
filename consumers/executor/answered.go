package executor

import (
	"slices"
	"sync"
)

// remembered is how many answered tables of a scope are kept in mind: the ttl of what
// comes again after so many later ones is long over.
const remembered = 256

// answered remembers which commands of tables a process has answered, for when the
// server does not know any more that it has delivered them. It is safe for concurrent
// use; the zero value remembers nothing yet.
type answered struct {
	mu     sync.Mutex
	scopes map[string][]delivered // in the order of their first answers
}

// delivered is a command as the server has it: another one of the same epoch, from a
// decider that has lost its state, is to be answered for itself.
type delivered struct{ seq, epoch uint64 }

func (a *answered) add(c *command) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scopes == nil {
		a.scopes = map[string][]delivered{}
	}
	all, d := a.scopes[c.Scope], delivered{c.meta.Sequence.Stream, c.Epoch}
	if slices.Contains(all, d) {
		return
	}
	if len(all) == remembered {
		all = slices.Delete(all, 0, 1)
	}
	a.scopes[c.Scope] = append(all, d)
}

func (a *answered) has(c *command) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.scopes[c.Scope], delivered{c.meta.Sequence.Stream, c.Epoch})
}
