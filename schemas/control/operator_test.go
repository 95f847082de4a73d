package control

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestDecodeSwitch(t *testing.T) {
	for _, c := range []struct{ key, body string }{
		{"mode.placement", `{"version":1,"mode":"act","by":"ann","at":"2026-01-02T03:04:05Z"}`},
		{"freeze.all", `{"version":1,"on":true}`},
		{"freeze.split", `{"version":1}`},
		{"rollback.placement", `{"version":1,"after":"2026-01-02T03:04:05Z"}`},
		{"evacuate.us-east", `{"version":1,"on":true,"later":"field"}`},
	} {
		if _, err := DecodeSwitch(c.key, []byte(c.body)); err != nil {
			t.Errorf("%s %s: %v", c.key, c.body, err)
		}
	}
	for _, c := range []struct{ key, body string }{
		{"mode.placement", `{"version":1}`},
		{"mode.placement", `{"version":1,"mode":"Act"}`},
		{"mode.placement", `{"version":2,"mode":"act"}`},
		{"mode.placement", `act`},
		{"freeze.all", `{"on":true}`},
		{"freeze.all", `{"version":1,"on":"yes"}`},
		{"rollback.placement", `{"version":1}`},
		{"rollback.placement", `{"version":1,"after":"yesterday"}`},
		{"thaw.all", `{"version":1}`},
	} {
		if _, err := DecodeSwitch(c.key, []byte(c.body)); !errors.Is(err, ErrUndecodable) {
			t.Errorf("%s %s: got %v, expected ErrUndecodable", c.key, c.body, err)
		}
	}
}

func TestSwitchesOf(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rollback := `{"version":1,"after":"2026-01-02T03:04:05Z"}`
	on, off := `{"version":1,"on":true}`, `{"version":1}`
	for _, c := range []struct {
		name    string
		entries []Entry
		want    Switches
	}{
		{"nothing", nil, Switches{}},
		{"mode", []Entry{{"mode.placement", []byte(`{"version":1,"mode":"advise"}`), 4}}, Switches{Mode: Advise, ModeRevision: 4}},
		{"other kinds", []Entry{{"mode.split", []byte("junk"), 1}, {"freeze.coding", []byte(on), 2}, {"rollback.servers", []byte(rollback), 3}}, Switches{}},
		{"freeze of all", []Entry{{FreezeAllKey, []byte(on), 2}, {"freeze.placement", []byte(off), 3}}, Switches{Frozen: true}},
		{"thaw", []Entry{{FreezeAllKey, []byte(off), 2}, {"freeze.placement", []byte(off), 3}}, Switches{}},
		{"rollback freezes", []Entry{{"freeze.placement", []byte(off), 3}, {"rollback.placement", []byte(rollback), 4}}, Switches{Frozen: true, Rollback: &at, RollbackRevision: 4}},
		{"until the thaw", []Entry{{"freeze.placement", []byte(off), 5}, {"rollback.placement", []byte(rollback), 4}}, Switches{Rollback: &at, RollbackRevision: 4}},
		{"a thaw of all is none of the kind", []Entry{{FreezeAllKey, []byte(off), 5}, {"rollback.placement", []byte(rollback), 4}}, Switches{Frozen: true, Rollback: &at, RollbackRevision: 4}},
		{"sites", []Entry{{EvacuateKey("west"), []byte(on), 1}, {EvacuateKey("é"), []byte(on), 2}, {EvacuateKey("north"), []byte(off), 3}}, Switches{Evacuate: []string{"west", "é"}}},
		{
			"unreadable ones freeze",
			[]Entry{{"mode.placement", []byte("act"), 2}, {"evacuate.a.b", []byte(on), 1}},
			Switches{Frozen: true, Unreadable: []string{"evacuate.a.b", "mode.placement"}},
		},
	} {
		if got := SwitchesOf(Placement, c.entries); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, expected %+v", c.name, got, c.want)
		}
	}
}
