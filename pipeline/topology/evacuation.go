package topology

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// failuresWithin is how many of the newest outcomes are looked at for moves that
// failed.
const failuresWithin = 1 << 17

// Evacuation is how the emptying of a site stands at one moment.
type Evacuation struct {
	Site string `json:"site"`
	// Remaining is how many owners' live copies are at the site: by locations, by
	// what the decider has learned, or by what the store there lists. The site is
	// empty at 0.
	Remaining int `json:"remaining"`
	// Moving is how many of them are on their way out, Coming how many others on
	// their way in by a decision of before.
	Moving int `json:"moving"`
	Coming int `json:"coming"`
	// NoData is how many owners were asked for here and have no data: nobody ever
	// located them, and the store has no copy. They don't remain.
	NoData int `json:"no_data"`
	// Decided: the last decided window, that ended at Window, knew of it.
	Decided bool      `json:"decided"`
	Window  time.Time `json:"window,omitzero"`
	// Blocked says why no decision moves anything, empty if one may.
	Blocked string `json:"blocked,omitempty"`
	// Held are the owners of whom something has failed or stands in the way, by
	// owner; Waiting counts the others by what they wait for.
	Held    []Held         `json:"held"`
	Waiting map[string]int `json:"waiting,omitempty"`
	// Looked: the store at the site was listed.
	Looked bool `json:"store_listed"`
}

// Held is an owner that stays at a site that is being emptied.
type Held struct {
	Owner string `json:"owner"`
	// Why is the policy's reason, the status of the last move, or Unknown or
	// SecondCopy.
	Why  string `json:"why"`
	Text string `json:"text"`
}

// Reasons of owners that only the store knows of.
const (
	// Unknown: the store has a live copy, and neither locations nor the decider
	// know the owner.
	Unknown = "Unknown"
	// SecondCopy: the store has a live copy, and the owner is known to be at
	// another site.
	SecondCopy = "SecondCopy"
)

// standsInTheWay are the policy's reasons that no later window takes away by
// itself.
var standsInTheWay = map[string]string{
	placement.Pinned.String():        "it is pinned: penstock locations unpin",
	placement.NoAllowedSite.String(): "residency and evacuations leave it no other site",
	placement.NoRoom.String():        "no other site has room for its traffic",
	placement.Rejected.String():      "the same move was refused before, and nothing has changed",
	placement.UnknownSite.String():   "the configuration doesn't name the site",
}

// Empty reports whether nothing remains and nothing is coming.
func (e *Evacuation) Empty() bool { return e.Remaining == 0 && e.Coming == 0 }

// Stuck reports whether nothing more will happen by itself: all that remains has
// failed or cannot be moved, or no decision moves anything.
func (e *Evacuation) Stuck() bool {
	switch {
	case e.Empty() || e.Moving > 0 || e.Coming > 0:
		return false
	case e.Decided && e.Blocked != "":
		return true
	case len(e.Held) < e.Remaining:
		return false
	case e.Decided:
		return true
	}
	return !slices.ContainsFunc(e.Held, func(h Held) bool { return h.Why != Unknown && h.Why != SecondCopy })
}

// Evacuations looks at sites that are being emptied. It changes nothing.
type Evacuations struct {
	Client *bus.Client
	Table  *locations.KV
	// Store lists what the site itself has; nil: it isn't at hand.
	Store  objectstore.Store
	Logger zerolog.Logger
}

// Look tells how the emptying of a site stands.
func (v *Evacuations) Look(ctx context.Context, site string) (*Evacuation, error) {
	x := &looking{Evacuations: v, e: &Evacuation{Site: site, Waiting: map[string]int{}, Held: []Held{}}, here: map[string]placement.Standing{}, located: map[string]bool{}}
	for _, step := range []func(context.Context) error{x.list, x.decision, x.policy, x.table, x.failures, x.compare} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("evacuation of %s: %w", site, err)
		}
	}
	return x.e, nil
}

// looking is one look.
type looking struct {
	*Evacuations
	e       *Evacuation
	listed  []string // owners with a copy in the store that may be written to
	learned decider.Policy
	decided bool
	here    map[string]placement.Standing
	located map[string]bool   // of those here, who has an entry in locations
	others  map[string]string // sites by owner, of owners that the store lists
	failing map[string]locations.Failing
}

// list lists the store first: what leaves it meanwhile is looked at again.
func (x *looking) list(ctx context.Context) error {
	if x.Store == nil {
		return nil
	}
	x.e.Looked = true
	return x.Store.Owners(ctx, func(owner string, m objectstore.Mark) error {
		if m.Writable() {
			x.listed = append(x.listed, owner)
		}
		return nil
	})
}

// decision reads the last record: did it know, and may it move anything?
func (x *looking) decision(ctx context.Context) error {
	m, err := x.Client.Last(ctx, subject.CommandsStream, subject.Decisions(string(control.Placement)))
	if errors.Is(err, bus.ErrNoMessage) {
		return nil
	}
	if err != nil {
		return err
	}
	d, err := control.DecodeDecision(m.Data)
	if err != nil {
		return err
	}
	x.decided = true
	x.e.Window = d.Window.End.UTC()
	x.e.Decided = slices.Contains(d.Operator.Evacuate, x.e.Site)
	switch {
	case d.Operator.Frozen:
		x.e.Blocked = "placement is frozen: penstock thaw placement"
	case d.Mode != control.Act:
		x.e.Blocked = fmt.Sprintf("the mode is %s: penstock mode placement act", d.Mode)
	}
	return nil
}

// policy recovers what the decider knows, outcomes since the last record included.
func (x *looking) policy(ctx context.Context) error {
	if !x.decided {
		return nil
	}
	config, err := decider.ConfigInForce(ctx, x.Client, control.Placement)
	if err != nil {
		return err
	}
	loaded, err := decider.Load(ctx, decider.Options{
		Client: x.Client, Config: config, Factory: placementFactory, Logger: x.Logger, Purpose: bus.Replay,
	})
	if err != nil {
		return err
	}
	p, ok := loaded.Policy.(*placement.Policy)
	if !ok {
		return fmt.Errorf("policy of type %T: %w", loaded.Policy, ErrOptions)
	}
	x.learned = p
	for _, s := range p.At(x.e.Site) {
		x.here[s.Owner] = s
	}
	x.e.Coming = len(p.To(x.e.Site))
	return nil
}

// table lets locations correct what the decider knows: an entry changes at the
// flip, and the decider hears of it later.
func (x *looking) table(ctx context.Context) error {
	listed := make(map[string]struct{}, len(x.listed))
	for _, owner := range x.listed {
		listed[owner] = struct{}{}
	}
	x.others = map[string]string{}
	return x.Table.List(ctx, func(owner string, l control.Location) error {
		_, is := x.here[owner]
		switch {
		case l.Site != x.e.Site:
			delete(x.here, owner)
			if _, ok := listed[owner]; ok {
				x.others[owner] = l.Site
			}
		case !is:
			x.here[owner] = placement.Standing{Owner: owner, Pinned: l.Pinned}
			x.located[owner] = true
		default:
			x.located[owner] = true
		}
		return nil
	})
}

func (x *looking) failures(ctx context.Context) error {
	all, err := locations.FailingMoves(ctx, x.Client, failuresWithin)
	x.failing = make(map[string]locations.Failing, len(all))
	for _, f := range all {
		x.failing[f.Owner] = f
	}
	return err
}

// compare puts it together.
func (x *looking) compare(ctx context.Context) error {
	for _, s := range x.here {
		nothing, err := x.nothing(ctx, s)
		if err != nil {
			return err
		}
		if nothing {
			x.e.NoData++
			delete(x.here, s.Owner)
			continue
		}
		x.owner(s)
	}
	x.e.Remaining = len(x.here)
	if x.Store != nil {
		if err := x.stray(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(x.e.Held, func(a, b Held) int { return cmp.Compare(a.Owner, b.Owner) })
	return nil
}

// nothing reports whether an owner whose move found no data has none here: somebody
// asked for it, as scanners ask for anything, and it was never located.
func (x *looking) nothing(ctx context.Context, s placement.Standing) (bool, error) {
	if x.located[s.Owner] || x.failing[s.Owner].Reason != mover.ReasonSourceMissing {
		return false, nil
	}
	if x.Store == nil {
		return true, nil
	}
	m, err := x.Store.Stat(ctx, s.Owner)
	return m.State == objectstore.Absent, err
}

func (x *looking) owner(s placement.Standing) {
	f, failed := x.failing[s.Owner]
	text, final := standsInTheWay[s.Stays]
	switch {
	case s.MovingTo != "":
		x.e.Moving++
	case s.Pinned:
		x.hold(s.Owner, placement.Pinned.String(), standsInTheWay[placement.Pinned.String()])
	case failed:
		x.hold(s.Owner, string(f.Status), fmt.Sprintf("its last move, to %s, was %s: %s (%d in a row)", f.To, f.Status, cmp.Or(f.Reason, "no reason given"), f.Count))
	case final && x.e.Decided:
		x.hold(s.Owner, s.Stays, text)
	case !x.e.Decided: // what the last plan said was not of this
		x.e.Waiting["a decision"]++
	default:
		x.e.Waiting[cmp.Or(s.Stays, "a decision")]++
	}
}

func (x *looking) hold(owner, why, text string) {
	x.e.Held = append(x.e.Held, Held{owner, why, text})
}

// stray finds what the store has and nobody counts as being there.
func (x *looking) stray(ctx context.Context) error {
	for _, owner := range x.listed {
		if _, counted := x.here[owner]; counted {
			continue
		}
		at := x.others[owner]
		if at == "" && x.learned != nil {
			if v, ok := x.learned.Explain(owner); ok {
				at = v.(placement.Explanation).Site
			}
		}
		// It may have left since.
		m, err := x.Store.Stat(ctx, owner)
		if err != nil {
			return err
		}
		if !m.Writable() {
			continue
		}
		x.e.Remaining++
		if at == "" {
			x.hold(owner, Unknown, "the store has a live copy, and nobody knows the owner: penstock locations import --from-stores")
			continue
		}
		x.hold(owner, SecondCopy, "the store has a copy that may be written to, and the owner is at "+at+": penstock locations verify")
	}
	return nil
}

// SitesInForce returns the names of the sites by which these kinds, placement or
// split, decide now, each once; nil if none of them has decided anything yet.
func SitesInForce(ctx context.Context, client *bus.Client, kinds ...control.Kind) (names []string, err error) {
	for _, k := range kinds {
		body, err := decider.ConfigInForce(ctx, client, k)
		if errors.Is(err, bus.ErrNoMessage) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Both kinds list their sites alike.
		var c struct {
			Sites []struct {
				Name string `json:"name"`
			} `json:"sites"`
		}
		if err := json.Unmarshal(body, &c); err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", k, err)
		}
		for _, s := range c.Sites {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names, nil
}

// EvacuationSince returns the switch that empties a site and its revision; nil if
// it was never set.
func EvacuationSince(ctx context.Context, client *bus.Client, site string) (*control.Switch, error) {
	kv, err := client.KV(ctx, subject.OperatorKV)
	if err != nil {
		return nil, err
	}
	key := control.EvacuateKey(site)
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("switch %s: %w", key, err)
	}
	return control.DecodeSwitch(key, e.Value())
}

// Changes is a mark that moves on when a record or an outcome has come.
func (v *Evacuations) Changes(ctx context.Context) (string, error) {
	commands, err := v.Client.State(ctx, subject.CommandsStream)
	if err != nil {
		return "", err
	}
	outcomes, err := v.Client.State(ctx, subject.OutcomesStream)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(commands.LastSeq, 10) + "/" + strconv.FormatUint(outcomes.LastSeq, 10), nil
}
