package shares

// arrivals is what stands for all components without a table, so that asking about
// names that nobody has costs nothing for ever.
const arrivals = ""

// Changed is closed when another table comes into force for a calling component,
// or its table goes; of a component without one, when any gets its first. Who waits
// for it looks at Table after having called Changed: what comes after the look closes
// the channel.
func (r *Router) Changed(from string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.tables[from]; !has {
		from = arrivals
	}
	c := r.changed[from]
	if c == nil {
		c = make(chan struct{})
		r.changed[from] = c
	}
	return c
}

// tell wakes up who waits for a calling component. The caller holds mu.
func (r *Router) tell(from string) {
	if c := r.changed[from]; c != nil {
		close(c)
		delete(r.changed, from)
	}
}

// Table is what is in force for a calling component; false if there is none. It is
// not to be changed.
func (r *Router) Table(from string) (Table, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.tables[from]
	return t, ok
}
