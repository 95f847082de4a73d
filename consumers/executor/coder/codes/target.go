package codes

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/inforce"
	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

// Target is the executor's target of kind coding: it brings tables into force at
// choosers and gives way to their defaults when a ttl is over.
type Target = inforce.Target[control.CodingTable]

// NewTarget returns a target for the choosers of this process by the names of their
// coders, which are the scopes of commands. It is called coder in outcomes, unless o has
// another name. ErrOptions.
func NewTarget(choosers map[string]*Chooser, o inforce.Options) (*Target, error) {
	holders := map[string]inforce.Holder[control.CodingTable]{}
	for name, c := range choosers {
		if c == nil {
			return nil, fmt.Errorf("no chooser of %.80q: %w", name, ErrOptions)
		}
		holders[name] = holder{c}
	}
	o.Name = cmp.Or(o.Name, "coder")
	t, err := inforce.New(kind, holders, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return t, nil
}

var kind = inforce.Kind[control.CodingTable]{
	Kind: control.Coding, Scope: "coder", ErrTable: ErrTable,
	Of:   func(c *control.Command) *control.CodingTable { return c.Coding },
	Log:  func(e *zerolog.Event, t *control.CodingTable) { e.Str("policy", string(t.Policy)) },
	File: func(name string) inforce.File[control.CodingTable] { return &file{wholefile.JSON[[]held]{Name: name}} },
}

// holder is a chooser as what holds a table.
type holder struct{ *Chooser }

func (h holder) Put(t *control.CodingTable, epoch uint64, until time.Time) error {
	return h.Set(t, epoch, until)
}

func (h holder) Held() (inforce.Held[control.CodingTable], bool) {
	s := h.State()
	return inforce.Held[control.CodingTable]{Epoch: s.Epoch, Until: s.Until, Table: s.Table}, !s.Until.IsZero()
}

func (h holder) GiveWay() { h.giveWay() }

// held is a table in the file, which is a list of them.
type held struct {
	Scope string              `json:"coder"`
	Epoch uint64              `json:"epoch"`
	Until time.Time           `json:"until"`
	Table control.CodingTable `json:"table"`
}

type file struct{ wholefile.JSON[[]held] }

func (f *file) Read() ([]inforce.Held[control.CodingTable], error) {
	all, _, err := f.JSON.Read()
	var out []inforce.Held[control.CodingTable]
	for _, h := range all {
		out = append(out, inforce.Held[control.CodingTable](h))
	}
	return out, err
}

func (f *file) Keep(all []inforce.Held[control.CodingTable]) error {
	out := []held{}
	for _, h := range all {
		out = append(out, held(h))
	}
	return f.JSON.Keep(out)
}
