package dispatcher

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/inforce"
	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

// Target is the executor's target of kind servers at a dispatcher: it brings tables into
// force at its site and gives way to the default when a ttl is over.
type Target = inforce.Target[control.ServersTable]

// NewTarget returns a target for a site, which is the scope of its commands. It is called
// dispatcher in outcomes, unless o has another name; the server switch's is its own, see
// control.SwitchTarget. ErrOptions.
func NewTarget(s *Site, o inforce.Options) (*Target, error) {
	if s == nil || o.Name == control.SwitchTarget {
		return nil, fmt.Errorf("a target needs a site, and another name than %s: %w", control.SwitchTarget, ErrOptions)
	}
	o.Name = cmp.Or(o.Name, "dispatcher")
	t, err := inforce.New(kind, map[string]inforce.Holder[control.ServersTable]{s.o.Site: holder{s}}, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return t, nil
}

var kind = inforce.Kind[control.ServersTable]{
	Kind: control.Servers, Scope: "site", ErrTable: ErrTable,
	Of:   func(c *control.Command) *control.ServersTable { return c.Servers },
	Log:  func(e *zerolog.Event, t *control.ServersTable) { e.Int("on", len(t.On)).Int("off", len(t.Off)) },
	File: func(name string) inforce.File[control.ServersTable] { return &file{wholefile.JSON[*held]{Name: name}} },
}

// holder is a site as what holds a table.
type holder struct{ *Site }

func (h holder) Held() (inforce.Held[control.ServersTable], bool) {
	in := h.Table()
	if in.Servers == nil {
		return inforce.Held[control.ServersTable]{}, false
	}
	return inforce.Held[control.ServersTable]{Epoch: in.Epoch, Until: in.Until, Table: *in.Servers}, true
}

func (h holder) GiveWay() { h.giveWay() }

// held is the table in the file, which has one or null.
type held struct {
	Scope string               `json:"site"`
	Epoch uint64               `json:"epoch"`
	Until time.Time            `json:"until"`
	Table control.ServersTable `json:"table"`
}

type file struct{ wholefile.JSON[*held] }

func (f *file) Read() ([]inforce.Held[control.ServersTable], error) {
	h, _, err := f.JSON.Read()
	if err != nil || h == nil {
		return nil, err
	}
	return []inforce.Held[control.ServersTable]{inforce.Held[control.ServersTable](*h)}, nil
}

func (f *file) Keep(all []inforce.Held[control.ServersTable]) error {
	if len(all) == 0 {
		return f.JSON.Keep(nil)
	}
	h := held(all[0])
	return f.JSON.Keep(&h)
}
