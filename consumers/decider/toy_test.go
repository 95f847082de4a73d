package decider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/window"
)

// toyConfig is the configuration of toy.
type toyConfig struct {
	// Sites that owners go round.
	Sites []string `json:"sites"`
	// Least requests in a window for which an owner is moved.
	Least int64 `json:"least"`
	// Scopes spreads an owner's command over so many scopes, one message each,
	// to make decisions of many messages.
	Scopes int `json:"scopes,omitempty"`
	// Breaks is after how many windows running with more bad than good ends of
	// moves the promises count as broken; 0 never.
	Breaks int `json:"breaks,omitempty"`
	// Salt changes what the policy does without telling its configuration: a
	// program that isn't what it was.
	Salt int64 `json:"-"`
}

func (c toyConfig) bytes() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return b
}

// toy moves an owner that was asked for often enough to the next site. It keeps
// all the rules of Policy and is easily worked out by hand.
type toy struct {
	cfg toyConfig
	toyState
}

type toyState struct {
	Owners map[string]*toyOwner `json:"owners"`
	// Moves, of the last windows in which promises were made, and how many of
	// them ended badly.
	Moves  int `json:"moves,omitempty"`
	Bad    int `json:"bad,omitempty"`
	Streak int `json:"streak,omitempty"` // of bad windows running
}

// judge says whether the promises of the windows so far are broken.
func (p *toy) judge() *control.Reason {
	switch {
	case p.Moves == 0:
		return nil
	case 2*p.Bad > p.Moves:
		p.Streak++
	default:
		p.Streak = 0
	}
	p.Moves, p.Bad = 0, 0
	if p.cfg.Breaks == 0 || p.Streak < p.cfg.Breaks {
		return nil
	}
	n := p.Streak
	p.Streak = 0
	return &control.Reason{Code: PromisesBroken, Count: int64(n), Text: fmt.Sprintf("most moves of %d windows running came to nothing", n)}
}

type toyOwner struct {
	Requests int64  `json:"requests"`
	Site     int    `json:"site"`
	Version  uint64 `json:"version"`
	Pending  uint64 `json:"pending,omitempty"`
}

func toyFactory(salt int64) Factory {
	return func(config []byte) (Policy, error) {
		p := &toy{toyState: toyState{Owners: map[string]*toyOwner{}}}
		if err := json.Unmarshal(config, &p.cfg); err != nil {
			return nil, err
		}
		if len(p.cfg.Sites) < 2 {
			return nil, errors.New("toy: too few sites")
		}
		p.cfg.Salt = salt
		return p, nil
	}
}

func (p *toy) Kind() control.Kind   { return control.Placement }
func (p *toy) Groups() []string     { return []string{window.Owners} }
func (p *toy) Width() time.Duration { return time.Hour }
func (p *toy) Config() []byte       { return p.cfg.bytes() }

func (p *toy) Decide(in Input) Output {
	out := Output{Case: "toy"}
	if t := in.Tables["traffic"]; t != nil {
		requests := t.Column("requests")
		for i := range t.Len() {
			o := p.Owners[t.Key("owner").At(i)]
			if o == nil {
				o = &toyOwner{}
				p.Owners[t.Key("owner").At(i)] = o
			}
			o.Requests += requests[i] + p.cfg.Salt
		}
	}
	if in.Acts() {
		out.Broken = p.judge()
	}
	busy := int64(0)
	byScope := map[string][]control.Move{}
	for n, id := range slices.Sorted(maps.Keys(p.Owners)) {
		o := p.Owners[id]
		if o.Requests < p.cfg.Least && in.Operator.Rollback == nil {
			continue
		}
		if o.Pending != 0 {
			busy++
			continue
		}
		if !in.Publishes() || in.Operator.Rollback != nil && o.Site == 0 {
			continue
		}
		step := 1
		if in.Operator.Rollback != nil {
			step = len(p.cfg.Sites) - 1
		}
		to := (o.Site + step) % len(p.cfg.Sites)
		scope := p.cfg.Sites[to]
		if p.cfg.Scopes > 0 {
			scope = fmt.Sprintf("%s-%04d", scope, n%p.cfg.Scopes)
		}
		byScope[scope] = append(byScope[scope], control.Move{
			Owner: id, From: p.cfg.Sites[o.Site], To: p.cfg.Sites[to], Version: o.Version + 1, Bytes: o.Requests,
		})
		if in.Acts() {
			o.Pending = o.Version + 1
			p.Moves++
		}
	}
	if busy > 0 {
		out.Reasons = append(out.Reasons, control.Reason{Code: "MoveUnderWay", Count: busy})
	}
	for _, scope := range slices.Sorted(maps.Keys(byScope)) {
		out.Commands = append(out.Commands, control.Command{
			Scope: scope, Reason: control.Reason{Code: "Often"}, Placement: &control.Moves{Moves: byScope[scope]},
		})
	}
	return out
}

func (p *toy) Apply(o *control.Outcome) {
	x := p.Owners[o.Owner]
	if o.Status == control.Imported {
		if x == nil {
			x = &toyOwner{}
			p.Owners[o.Owner] = x
		}
		x.Site, x.Version, x.Pending = slices.Index(p.cfg.Sites, o.Scope), max(x.Version, o.Move), 0
		return
	}
	if x == nil || x.Pending != o.Move || o.Move == 0 {
		return
	}
	// A version that was answered is spent, whatever the answer.
	x.Pending, x.Version = 0, o.Move
	if o.Status == control.Done {
		x.Requests = 0
		x.Site = slices.Index(p.cfg.Sites, o.Scope)
	} else {
		p.Bad++
	}
}

func (p *toy) Digest() string {
	b, err := json.Marshal(p.toyState)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (p *toy) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(p.toyState) }

func (p *toy) Restore(r io.Reader) error {
	p.toyState = toyState{Owners: map[string]*toyOwner{}}
	return json.NewDecoder(r).Decode(&p.toyState)
}

func (p *toy) Explain(owner string) (any, bool) {
	o, ok := p.Owners[owner]
	if !ok {
		return nil, false
	}
	return *o, true
}
