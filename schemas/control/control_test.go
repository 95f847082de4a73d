package control_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/schemas/control"
)

var (
	zone   = time.FixedZone("somewhere", 2*3600)
	start  = time.Date(2015, 5, 17, 12, 0, 0, 0, zone)
	aWeek  = control.Window{Start: start, End: start.Add(time.Hour)}
	digest = "sha256:" + strings.Repeat("0a", 32)
)

func command() control.Command {
	return control.Command{
		Version: 1, Kind: control.Placement, Scope: "us-west", Epoch: 5, Window: aWeek, Mode: control.Act, TTL: "24h0m0s",
		Reason: control.Reason{Code: "OverCapacity", Evidence: map[string]any{"b": 1, "a": "<&>"}}, Supersedes: 4,
		Placement: &control.Moves{Moves: []control.Move{{Owner: "a@b.c", From: "us-east", To: "us-west", Version: 7, Bytes: 18231}}},
	}
}

func TestEncodingIsCanonical(t *testing.T) {
	after := start
	for _, c := range []struct {
		name     string
		message  any
		expected string
	}{
		{"command", command(), `{"version":1,"kind":"placement","scope":"us-west","epoch":5,` +
			`"window":{"start":"2015-05-17T10:00:00Z","end":"2015-05-17T11:00:00Z"},"mode":"act","ttl":"24h0m0s",` +
			`"reason":{"code":"OverCapacity","evidence":{"a":"<&>","b":1}},"supersedes":4,` +
			`"placement":{"moves":[{"owner":"a@b.c","from":"us-east","to":"us-west","version":7,"bytes":18231}]}}`},
		{"split", func() control.Command {
			c := command()
			c.Kind, c.Scope, c.Placement = control.Split, "frontend", nil
			c.Reason = control.Reason{Code: "LowerDelay"}
			c.Split = &control.SplitTable{
				Table: []control.SplitRow{
					{FromSite: "us-east", To: "search", Ratios: []control.SplitRatio{{Site: "us-east", Share: 0.62}, {Site: "us-west", Share: 0.38}}, WritesAt: "us-east"},
					{FromSite: "us-west", To: "search"},
				},
				Probes: []control.Probe{{FromSite: "us-west", To: "search", Site: "us-east", Share: 0.05}},
			}
			return c
		}(), `{"version":1,"kind":"split","scope":"frontend","epoch":5,` +
			`"window":{"start":"2015-05-17T10:00:00Z","end":"2015-05-17T11:00:00Z"},"mode":"act","ttl":"24h0m0s",` +
			`"reason":{"code":"LowerDelay"},"supersedes":4,"split":{"table":[` +
			`{"from_site":"us-east","to":"search","ratios":[{"site":"us-east","share":0.62},{"site":"us-west","share":0.38}],"writes_at":"us-east"},` +
			`{"from_site":"us-west","to":"search","ratios":[]}],` +
			`"probes":[{"from_site":"us-west","to":"search","site":"us-east","share":0.05}]}}`},
		{"decision without lists", &control.Decision{
			Version: 1, Kind: control.Placement, Window: aWeek, Mode: control.Advise,
			Operator: control.Operator{Mode: control.Advise, Rollback: &after}, Policy: digest, State: digest,
		}, `{"version":1,"kind":"placement","window":{"start":"2015-05-17T10:00:00Z","end":"2015-05-17T11:00:00Z"},"mode":"advise",` +
			`"reasons":[],"commands":[],"operator":{"mode":"advise","rollback":"2015-05-17T10:00:00Z"},"policy":"` + digest + `","state":"` + digest + `"}`},
		{
			"outcome", &control.Outcome{Version: 1, Kind: control.Placement, Scope: "w", Owner: "blog", Move: 7, Status: control.Done, By: "mover-1", At: start},
			`{"version":1,"kind":"placement","scope":"w","owner":"blog","move":7,"status":"done","reason":"","bytes":0,"took_us":0,"by":"mover-1","at":"2015-05-17T10:00:00Z"}`,
		},
		{
			"location",
			control.Location{Site: "us-east", Version: 7, State: control.Live, Since: start},
			`{"site":"us-east","version":7,"state":"live","since":"2015-05-17T10:00:00Z"}`,
		},
		{
			"switch",
			control.Switch{Version: 1, After: &after, At: start},
			`{"version":1,"after":"2015-05-17T10:00:00Z","at":"2015-05-17T10:00:00Z"}`,
		},
	} {
		got, err := control.Encode(c.message)
		if err != nil || string(got) != c.expected {
			t.Errorf("%s: got\n%s, %v\nexpected\n%s", c.name, got, err, c.expected)
		}
	}
	if after.Location() != zone {
		t.Error("Encode changed the message")
	}
}

func TestWhatJSONCannotHoldIsNotEncoded(t *testing.T) {
	for _, r := range []control.Reason{
		{Owner: "a\xffb"},
		{Owner: "\\\xff"},
		{Evidence: map[string]any{"x": math.NaN()}},
	} {
		if got, err := control.Encode(r); !errors.Is(err, control.ErrUnencodable) {
			t.Errorf("%+v: got %s, %v", r, got, err)
		}
	}
	for _, owner := range []string{"\ufffd", `\ufffd`, `\\ufffd`, `a\`, "é\u2028"} {
		if _, err := control.Encode(control.Reason{Owner: owner}); err != nil {
			t.Errorf("%q: %v", owner, err)
		}
	}
}

func TestMessagesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := command()
		c.Placement.Moves = nil
		for i := range rapid.IntRange(0, 5).Draw(t, "moves") {
			c.Placement.Moves = append(c.Placement.Moves, control.Move{
				Owner: rapid.StringN(1, 40, control.MaxID).Draw(t, "owner"), From: fmt.Sprint("s", i), To: "other",
				Version: rapid.Uint64Range(1, math.MaxUint64).Draw(t, "version"), Bytes: rapid.Int64Range(0, math.MaxInt64).Draw(t, "bytes"),
			})
		}
		body, err := control.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := control.DecodeCommand(body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := control.Encode(got)
		if err != nil || string(again) != string(body) {
			t.Fatalf("got\n%s, %v\nexpected\n%s", again, err, body)
		}
	})
}

// broken returns the JSON of the message with one replacement.
func broken(t *testing.T, message any, old, replacement string) []byte {
	t.Helper()
	b, err := control.Encode(message)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s is not in %s", old, b)
	}
	return []byte(strings.Replace(string(b), old, replacement, 1))
}

func TestUnusableMessagesNameTheField(t *testing.T) {
	decision := control.Decision{
		Version: 1, Kind: control.Placement, Window: aWeek, Mode: control.Act, Reasons: []control.Reason{{Code: "NoRoom", Count: 1}},
		Commands: []control.CommandRef{{Scope: "w", Epoch: 3, Moves: 2}}, Operator: control.Operator{Mode: control.Act}, Policy: digest, State: digest,
	}
	outcome := control.Outcome{Version: 1, Kind: control.Placement, Scope: "w", Owner: "blog", Move: 7, Status: control.Done}
	table := control.Outcome{Version: 1, Kind: control.Split, Scope: "w", Epoch: 9, Status: control.Done}
	location := control.Location{Site: "e", Version: 1, State: control.Live, Since: start}
	long := strings.Repeat("x", control.MaxID+1)
	decode := map[string]func([]byte) (any, error){
		"decision": func(b []byte) (any, error) { m, err := control.DecodeDecision(b); return m, nilOr(m == nil, err) },
		"command":  func(b []byte) (any, error) { m, err := control.DecodeCommand(b); return m, nilOr(m == nil, err) },
		"outcome":  func(b []byte) (any, error) { m, err := control.DecodeOutcome(b); return m, nilOr(m == nil, err) },
		"location": func(b []byte) (any, error) { m, err := control.DecodeLocation(b); return m, nilOr(m == nil, err) },
	}
	for _, c := range []struct {
		what, expected   string
		message          any
		old, replacement string
	}{
		{"decision", `decision: field version: got "2", expected 1: undecodable control message`, decision, `"version":1`, `"version":2`},
		{"decision", `decision: field kind: got "routing", expected placement, split, servers or coding: undecodable control message`, decision, `"placement"`, `"routing"`},
		{"decision", `decision: field mode: got "", expected observe, advise or act: undecodable control message`, decision, `"mode":"act","reasons"`, `"reasons"`},
		{"decision", `decision: field window: got "2015-05-17T11:00:00Z to 2015-05-17T11:00:00Z", expected a start before its end: undecodable control message`, decision, `T10:`, `T11:`},
		{"decision", `decision: field reasons[0]: got "{Code: Scope: Owner: Count:1 Text: Evidence:map[]}", expected a code, a count of 0 or more, and ids of at most 1024 bytes: undecodable control message`, decision, `NoRoom`, ``},
		{"decision", `decision: field commands[0]: got "{Scope:w Epoch:0 Moves:2}", expected a scope, an epoch of at least 1, and moves of 0 or more: undecodable control message`, decision, `"epoch":3`, `"epoch":0`},
		{"decision", `decision: field operator.mode: got "on", expected observe, advise or act: undecodable control message`, decision, `"operator":{"mode":"act"`, `"operator":{"mode":"on"`},
		{"decision", `decision: not UTF-8: undecodable control message`, decision, `NoRoom`, "No\xffRoom"},
		{"decision", `decision: undecodable control message: json: cannot unmarshal number into Go struct field Decision.policy of type string`, decision, `"` + digest + `","state"`, `5,"state"`},
		{"command", `command: field scope: got "", expected 1 to 1024 bytes: undecodable control message`, command(), `"us-west","epoch"`, `"","epoch"`},
		{"command", `command: field epoch: got "0", expected at least 1: undecodable control message`, command(), `"epoch":5`, `"epoch":0`},
		{"command", `command: field supersedes: got "5", expected an epoch below this one's: undecodable control message`, command(), `"supersedes":4`, `"supersedes":5`},
		{"command", `command: field ttl: got "soon", expected a duration such as 10m: undecodable control message`, command(), `24h0m0s`, `soon`},
		{"command", `command: field ttl: got "-1s", expected a duration such as 10m: undecodable control message`, command(), `24h0m0s`, `-1s`},
		{"command", `command: field placement: got "", expected moves: undecodable control message`, command(), `"placement":{`, `"placemint":{`},
		{"command", `command: field placement: got "moves", expected nothing, in a command of kind split: undecodable control message`, command(), `"kind":"placement"`, `"kind":"split"`},
		{"command", `command: field placement.moves[0]: got "{Owner:a@b.c From:us-west To:us-west Version:7 Bytes:18231}", expected owner of at most 1024 bytes, from, another to, a version of at least 1, bytes of 0 or more: undecodable control message`, command(), `us-east`, `us-west`},
		{"command", `command: field placement.moves[0]: got "{Owner:` + long[:73] + `", expected owner of at most 1024 bytes, from, another to, a version of at least 1, bytes of 0 or more: undecodable control message`, command(), `a@b.c`, long},
		{"command", `command: field placement.moves: got "1001 moves", expected at most 1000: undecodable control message`, command(), `"moves":[`, `"moves":[` + strings.Repeat(`{},`, 1000)},
		{"outcome", `outcome: field owner: got "", expected 1 to 1024 bytes: undecodable control message`, outcome, `blog`, ``},
		{"outcome", `outcome: field move: got "0", expected the version of the move, at least 1: undecodable control message`, outcome, `"move":7`, `"move":0`},
		{"outcome", `outcome: field epoch: got "0", expected the epoch of the table, at least 1: undecodable control message`, table, `"epoch":9`, `"epoch":0`},
		{"outcome", `outcome: field status: got "ok", expected done, failed, refused, expired, advised, already-applied or imported: undecodable control message`, outcome, `done`, `ok`},
		{"outcome", `outcome: field bytes: got "-1", expected 0 or more: undecodable control message`, outcome, `"bytes":0`, `"bytes":-1`},
		{"location", `location: field site: got "", expected 1 to 1024 bytes: undecodable control message`, location, `"site":"e"`, `"site":""`},
		{"location", `location: field state: got "gone", expected live, moving or retired: undecodable control message`, location, `live`, `gone`},
		{"location", `location: undecodable control message: unexpected end of JSON input`, location, `}`, ``},
	} {
		_, err := decode[c.what](broken(t, c.message, c.old, c.replacement))
		if err == nil || err.Error() != c.expected {
			t.Errorf("got\n%v\nexpected\n%s", err, c.expected)
		}
		if !errors.Is(err, control.ErrUndecodable) {
			t.Errorf("%v does not wrap ErrUndecodable", err)
		}
	}
	for what, message := range map[string]any{"decision": decision, "command": command(), "outcome": outcome, "location": location} {
		if _, err := decode[what](broken(t, message, `{`, `{"added_later":[1],`)); err != nil {
			t.Errorf("%s with an unknown field: %v", what, err)
		}
	}
}

var errNotNil = errors.New("a message and an error")

// nilOr returns err, or another one if there is a message beside an error.
func nilOr(isNil bool, err error) error {
	if err != nil && !isNil {
		return errNotNil
	}
	return err
}

func TestSwitches(t *testing.T) {
	for _, c := range []struct{ key, body, expected string }{
		{"mode.placement", `{"version":1,"mode":"act","at":"2026-01-01T00:00:00Z"}`, ""},
		{"mode.placement", `{"version":1,"mode":"on"}`, `switch: field mode.placement.mode: got "on", expected observe, advise or act: undecodable control message`},
		{"mode.all", `{"version":1,"mode":"act"}`, `switch: field key: got "mode.all", expected one of a kind: placement, split, servers or coding: undecodable control message`},
		{"freeze.all", `{"version":1,"on":true}`, ""},
		{"freeze.split", `{"version":3,"on":true}`, `switch: field freeze.split.version: got "3", expected 1: undecodable control message`},
		{"evacuate.us-east", `{"version":1,"on":true}`, ""},
		{"rollback.coding", `{"version":1}`, `switch: field rollback.coding.after: got "", expected a time: undecodable control message`},
		{"retry.coding", `{"version":1}`, `switch: field key: got "retry.coding", expected mode.*, freeze.*, rollback.*, evacuate.* or purge.*: undecodable control message`},
		{"freeze.all", `{`, `switch "freeze.all": undecodable control message: unexpected end of JSON input`},
	} {
		s, err := control.DecodeSwitch(c.key, []byte(c.body))
		if fmt.Sprint(err) != c.expected && (err != nil || c.expected != "") || (s == nil) != (err != nil) {
			t.Errorf("%s %s: got %v, %v\nexpected %s", c.key, c.body, s, err, c.expected)
		}
	}
}

func TestSwitchesOfAKind(t *testing.T) {
	after := start.UTC()
	entry := func(key string, rev uint64, s control.Switch) control.Entry {
		s.Version = 1
		b, err := control.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		return control.Entry{Key: key, Value: b, Revision: rev}
	}
	mode := entry(control.ModeKey(control.Placement), 3, control.Switch{Mode: control.Act})
	rollback := entry(control.RollbackKey(control.Placement), 7, control.Switch{After: &after})
	for _, c := range []struct {
		name     string
		entries  []control.Entry
		expected string
	}{
		{"nothing set", nil, "{Mode: Frozen:false Evacuate:[] Rollback:<nil> RollbackRevision:0 ModeRevision:0 Unreadable:[]}"},
		{"another kind's", []control.Entry{entry(control.FreezeKey(control.Split), 9, control.Switch{On: true})}, "{Mode: Frozen:false Evacuate:[] Rollback:<nil> RollbackRevision:0 ModeRevision:0 Unreadable:[]}"},
		{"mode, all frozen", []control.Entry{mode, entry(control.FreezeAllKey, 4, control.Switch{On: true})}, "{Mode:act Frozen:true Evacuate:[] Rollback:<nil> RollbackRevision:0 ModeRevision:3 Unreadable:[]}"},
		{"two sites evacuated", []control.Entry{
			entry(control.EvacuateKey("b/c"), 5, control.Switch{On: true}), entry(control.EvacuateKey("a"), 6, control.Switch{On: true}), entry(control.EvacuateKey("d"), 7, control.Switch{}),
		}, "{Mode: Frozen:false Evacuate:[a b/c] Rollback:<nil> RollbackRevision:0 ModeRevision:0 Unreadable:[]}"},
		{"a rollback freezes", []control.Entry{rollback}, "{Mode: Frozen:true Evacuate:[] Rollback:T RollbackRevision:7 ModeRevision:0 Unreadable:[]}"},
		{"until it is thawed", []control.Entry{rollback, entry(control.FreezeKey(control.Placement), 8, control.Switch{})}, "{Mode: Frozen:false Evacuate:[] Rollback:T RollbackRevision:7 ModeRevision:0 Unreadable:[]}"},
		{"a thaw before it counts for nothing", []control.Entry{rollback, entry(control.FreezeKey(control.Placement), 6, control.Switch{})}, "{Mode: Frozen:true Evacuate:[] Rollback:T RollbackRevision:7 ModeRevision:0 Unreadable:[]}"},
		{"unreadable freezes", []control.Entry{{Key: "mode.placement", Value: []byte("?"), Revision: 2}, {Key: "evacuate.b64=!", Value: []byte(`{"version":1}`)}}, "{Mode: Frozen:true Evacuate:[] Rollback:<nil> RollbackRevision:0 ModeRevision:0 Unreadable:[evacuate.b64=! mode.placement]}"},
	} {
		s := control.SwitchesOf(control.Placement, c.entries)
		got := fmt.Sprintf("%+v", s)
		if s.Rollback != nil {
			got = strings.Replace(got, fmt.Sprintf("%+v", s.Rollback), "T", 1)
			if !s.Rollback.Equal(after) {
				t.Errorf("%s: rollback after %v", c.name, s.Rollback)
			}
		}
		if got != c.expected {
			t.Errorf("%s: got\n%s\nexpected\n%s", c.name, got, c.expected)
		}
	}
}

// TestCommandsOfAKind: who reads the subject of one kind gets no command of another.
func TestCommandsOfAKind(t *testing.T) {
	body, err := control.Encode(command())
	if err != nil {
		t.Fatal(err)
	}
	if m, err := control.DecodeCommandOf(control.Placement, body); err != nil || m.Placement == nil {
		t.Errorf("its own kind: %+v, %v", m, err)
	}
	if m, err := control.DecodeCommandOf(control.Split, body); m != nil || !errors.Is(err, control.ErrUndecodable) || !strings.Contains(err.Error(), "kind placement, expected split") {
		t.Errorf("another kind: %+v, %v", m, err)
	}
	if m, err := control.DecodeCommandOf(control.Split, []byte("{}")); m != nil || !errors.Is(err, control.ErrUndecodable) {
		t.Errorf("no command: %+v, %v", m, err)
	}
}
