package executor

import (
	"fmt"
	"sync"
)

// Admission is what Epochs says about a table.
type Admission int

// The admissions: carry it out; it was carried out before; it was rejected
// before, and stays so until its epoch changes; it had nothing for the target.
const (
	Admitted Admission = iota
	Repeated
	StillRejected
	StillNotConcerned
)

// Epochs remembers, per scope, which table is in force and which was rejected: it
// makes executors of tables idempotent by (kind, scope, epoch). It is safe for
// concurrent use; the zero value remembers nothing yet.
type Epochs struct {
	mu     sync.Mutex
	scopes map[string]*scopeEpochs
}

type scopeEpochs struct {
	force    uint64 // 0: none
	aside    bool   // that of force had nothing for the target: none is in force
	rejected uint64 // the last one rejected, 0: none
	reason   string
}

// Admit says what to do with a table of an epoch. ErrOlder if a later one is in
// force: the outcome is refused. A rejected table's reason is returned again.
func (e *Epochs) Admit(scope string, epoch uint64) (Admission, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.scopes[scope]
	switch {
	case s == nil:
		return Admitted, "", nil
	case epoch < s.force:
		return 0, "", fmt.Errorf("epoch %d of %.80q, epoch %d is in force: %w", epoch, scope, s.force, ErrOlder)
	case epoch == s.force && s.aside:
		return StillNotConcerned, "", nil
	case epoch == s.force:
		return Repeated, "", nil
	case epoch == s.rejected:
		return StillRejected, s.reason, nil
	default:
		return Admitted, "", nil
	}
}

// InForce notes that the table of an epoch was applied. An older one than that in
// force is not noted.
func (e *Epochs) InForce(scope string, epoch uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.scope(scope); epoch >= s.force {
		s.force, s.aside = epoch, false
	}
}

// NotConcerned notes that the table of an epoch had nothing for the target. Older
// ones are refused from then on, as if it were in force.
func (e *Epochs) NotConcerned(scope string, epoch uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.scope(scope); epoch >= s.force {
		s.force, s.aside = epoch, true
	}
}

// Rejected notes that the target would not take the table of an epoch. The one in
// force before stays in force.
func (e *Epochs) Rejected(scope string, epoch uint64, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.scope(scope)
	if epoch >= s.rejected {
		s.rejected, s.reason = epoch, reason
	}
}

func (e *Epochs) scope(name string) *scopeEpochs {
	if e.scopes == nil {
		e.scopes = map[string]*scopeEpochs{}
	}
	s := e.scopes[name]
	if s == nil {
		s = &scopeEpochs{}
		e.scopes[name] = s
	}
	return s
}
