package directory

import (
	"time"
)

const (
	// hintShards is the binary logarithm of how many shards the table of hints has.
	hintShards = 4
	// maxHints bounds them: they are what entry points heard in the last moments.
	maxHints = 1 << 16
)

// Learn takes a newer word than the bus's: the owner's data is at a site, under a
// version greater than the one known. Anything else is counted and has no effect.
func (d *Directory) Learn(owner, site string, version uint64) {
	d.shown.hints.WithLabelValues(d.learn(owner, site, version)).Inc()
}

// learn returns what became of a hint.
func (d *Directory) learn(owner, site string, version uint64) string {
	if len(owner) > maxOwner || site == "" || version == 0 {
		return "unusable"
	}
	if len(d.known) > 0 && !d.known[site] {
		return "unknown-site"
	}
	i, ok := d.names.intern(site)
	if !ok {
		return "unknown-site"
	}
	d.hintMu.Lock()
	defer d.hintMu.Unlock()
	if b := d.table.find(owner); b != nil {
		if _, v := whereOf(b); v >= version {
			return "old"
		}
	}
	if b := d.hints.find(owner); b != nil {
		if _, v := whereOf(b); v >= version {
			return "old"
		}
	} else if d.hints.owners.Load() >= d.hintMost {
		return "full"
	}
	if _, _, fits := d.hints.put(owner, place{site: i, version: version, since: d.clock.Now()}); !fits {
		return "full"
	}
	return "learned"
}

// supersede drops the hint about an owner that the bus has told of under a version
// that is as great or greater.
func (d *Directory) supersede(owner string, version uint64) {
	if d.hints.owners.Load() == 0 {
		return
	}
	d.hintMu.Lock()
	defer d.hintMu.Unlock()
	if b := d.hints.find(owner); b != nil {
		if _, v := whereOf(b); v <= version {
			d.hints.remove(owner)
			d.shown.hints.WithLabelValues("superseded").Inc()
		}
	}
}

// expireHints drops the hints that the bus had HintTTL to confirm: it has been in
// step since the given instant.
func (d *Directory) expireHints(now, since time.Time) {
	if d.hints.owners.Load() == 0 || now.Sub(since) < d.opts.HintTTL {
		return
	}
	before := now.Add(-d.opts.HintTTL)
	d.hintMu.Lock()
	defer d.hintMu.Unlock()
	var old []string
	d.hints.each(func(rec []byte) bool {
		owner, at := ownerOf(rec)
		if p, _ := placeOf(rec[at:]); !p.since.After(before) {
			old = append(old, string(owner))
		}
		return true
	})
	for _, owner := range old {
		d.hints.remove(owner)
	}
	d.shown.hints.WithLabelValues("expired").Add(float64(len(old)))
}
