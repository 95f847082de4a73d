package directory

import (
	"strings"

	"github.com/cespare/xxhash/v2"

	"penstock/infra/bus"
	"penstock/schemas/subject"
)

// Headers of a key's deletion: the client's, and the server's where it removes a
// key by itself.
const (
	headerOperation = "KV-Operation"
	headerMarker    = "Nats-Marker-Reason"
)

// apply does what a message of the bucket says. The caller holds the lock.
func (d *Directory) apply(m bus.Msg) {
	key := strings.TrimPrefix(m.Subject, d.prefix)
	d.at.seq, d.at.stored = m.Seq, m.Time
	owner, err := subject.Decode(key)
	if err != nil || len(owner) > maxOwner {
		d.ghosts[xxhash.Sum64String(key)] = struct{}{}
		d.aside("key", key, err)
		return
	}
	if deletes(m) {
		d.ghosts[xxhash.Sum64String(key)] = struct{}{}
		what := "none"
		if d.table.remove(owner) {
			d.changes++
			what = "removed"
		}
		d.supersede(owner, 1<<64-1)
		d.shown.changes.WithLabelValues(what).Inc()
		return
	}
	p, site, err := d.decode(m.Data)
	if err != nil {
		d.unusable("value", key, owner, err)
		return
	}
	d.set(key, owner, p, site)
}

// set takes an entry in.
func (d *Directory) set(key, owner string, p place, site string) {
	var ok bool
	if p.site, ok = d.names.intern(site); !ok {
		d.unusable("sites", key, owner, nil)
		return
	}
	added, changed, fits := d.table.put(owner, p)
	if !fits {
		d.unusable("full", key, owner, nil)
		return
	}
	if len(d.ghosts) > 0 {
		delete(d.ghosts, xxhash.Sum64String(key))
	}
	if len(d.known) > 0 && !d.known[site] {
		d.shown.unknownSites.Inc()
	}
	d.supersede(owner, p.version)
	switch {
	case added:
		d.shown.added.Inc()
	case changed:
		d.shown.changed.Inc()
	default:
		d.shown.same.Inc()
		return
	}
	d.changes++
}

// unusable sets an entry aside. What was known of its owner before stays.
func (d *Directory) unusable(reason, key, owner string, err error) {
	if !d.table.touch(owner) {
		d.ghosts[xxhash.Sum64String(key)] = struct{}{}
	}
	d.aside(reason, key, err)
}

func (d *Directory) aside(reason, key string, err error) {
	d.shown.setAside.WithLabelValues(reason).Inc()
	d.bad++
	if d.bad&(d.bad-1) != 0 {
		return // counted; the log gets the first, second, fourth, eighth …
	}
	d.log.Warn().Uint64("so_far", d.bad).Err(err).Str("reason", reason).Str("key", key[:min(len(key), 80)]).Msg("an entry of locations can't be used")
}

func deletes(m bus.Msg) bool {
	if m.Header == nil {
		return false
	}
	if len(m.Header[headerMarker]) > 0 {
		return true
	}
	op := m.Header[headerOperation]
	return len(op) > 0 && (op[0] == "DEL" || op[0] == "PURGE")
}
