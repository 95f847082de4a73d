package subject_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/schemas/subject"
)

var oneToken = regexp.MustCompile(`^[A-Za-z0-9_=-]+$`)

func TestTokens(t *testing.T) {
	for _, c := range []struct{ id, token string }{
		{"us-east", "us-east"},
		{"A_9=", "A_9="},
		{"a@b.c", "b64=YUBiLmM"},
		{"2001:db8::1", "b64=MjAwMTpkYjg6OjE"},
		{"50%", "b64=NTAl"},
		{"a b", "b64=YSBi"},
		{"é", "b64=w6k"},
		{"*", "b64=Kg"},
		{">", "b64=Pg"},
		{"a.b", "b64=YS5i"},
		{"/var/log", "b64=L3Zhci9sb2c"},
		{"b64=YSBi", "b64=YjY0PVlTQmk"},
		{"b64=", "b64=YjY0PQ"},
		{"", "b64="},
	} {
		if got := subject.Encode(c.id); got != c.token {
			t.Errorf("%q: got %q, expected %q", c.id, got, c.token)
		}
		if got, err := subject.Decode(c.token); err != nil || got != c.id {
			t.Errorf("%q: got %q, %v, expected %q", c.token, got, err, c.id)
		}
	}
}

func TestTokensThatAreNotOurs(t *testing.T) {
	for _, token := range []string{"", "a.b", "a b", "é", "b64=!", "b64=YQ==", "b64=YR", "b64=YQ", "b64=dXMtZWFzdA", "B64=?", "b64=\n", "b64=YS\r5i"} {
		// YQ is "a" and dXMtZWFzdA "us-east", which have a plainer spelling; YR is
		// "a" with a bit that means nothing.
		if got, err := subject.Decode(token); !errors.Is(err, subject.ErrToken) || got != "" {
			t.Errorf("%q: got %q, %v", token, got, err)
		}
	}
}

// ids are drawn from what owners are named by.
func ids() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[a-z.+]{1,12}@[a-z]{1,9}\.[a-z]{2,3}`),
		rapid.StringMatching(`([0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(%eth0)?`),
		rapid.StringMatching(`[A-Za-z0-9_=-]{1,20}`),
		rapid.StringMatching(`b64=[A-Za-z0-9_=-]{0,20}`),
		rapid.StringMatching(`(/[a-z% .*>]{0,9}){1,4}`),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
	)
}

func TestEveryIDHasOneToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids().Draw(t, "a"), ids().Draw(t, "b")
		ta, tb := subject.Encode(a), subject.Encode(b)
		if !oneToken.MatchString(ta) {
			t.Fatalf("%q: %q is not one token", a, ta)
		}
		if got, err := subject.Decode(ta); err != nil || got != a {
			t.Fatalf("%q: came back as %q, %v", a, got, err)
		}
		if (ta == tb) != (a == b) {
			t.Fatalf("%q and %q: %q and %q", a, b, ta, tb)
		}
	})
}

func TestEveryTokenHasOneID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.OneOf(rapid.StringMatching(`(b64=)?[A-Za-z0-9_=-]{0,12}`), rapid.String()).Draw(t, "token")
		if id, err := subject.Decode(token); err == nil && subject.Encode(id) != token {
			t.Fatalf("%q: %q has the token %q", token, id, subject.Encode(id))
		}
	})
}

func TestTheLongestIDMakesAShortSubject(t *testing.T) {
	// A subject over 4 KB closes the connection for good (DESIGN §3).
	long := strings.Repeat("é", 512)
	if s := subject.Rejects(long, long); len(s) >= 4096 {
		t.Errorf("%d bytes", len(s))
	}
}

func TestSubjects(t *testing.T) {
	for got, expected := range map[string]string{
		subject.Events(3, "web-1"):                  "events.3.web-1",
		subject.Marks("web.1"):                      "events.all.b64=d2ViLjE",
		strings.Join(subject.EventsOf(3), " "):      "events.3.* events.all.*",
		subject.Windows("fast", 3):                  "windows.fast.3",
		subject.WindowsOf("fast"):                   "windows.fast.*",
		subject.Decisions("placement"):              "decisions.placement",
		subject.Commands("placement", "us west"):    "commands.placement.b64=dXMgd2VzdA",
		subject.CommandsOf("placement"):             "commands.placement.*",
		subject.Outcomes("placement", "us-west"):    "outcomes.placement.us-west",
		subject.OutcomesOf("placement"):             "outcomes.placement.*",
		subject.Rejects("undecodable", "web-1"):     "rejects.undecodable.web-1",
		strings.Join(subject.Streams, " "):          "EVENTS WINDOWS COMMANDS OUTCOMES REJECTS",
		subject.LocationsKV + subject.OperatorKV:    "locationsoperator",
		subject.MembersKV + subject.SnapshotsBucket: "memberssnapshots",
		subject.Gate("us west", "web-1"):            "gate.b64=dXMgd2VzdA.web-1",
		subject.GateWhere + subject.EntriesKV:       "gate.whereentries",
	} {
		if got != expected {
			t.Errorf("got %q, expected %q", got, expected)
		}
	}
}

func TestSubjectsAreReadBack(t *testing.T) {
	for _, c := range []struct {
		subject   string
		entry     string
		partition int
		ok        bool
	}{
		{"events.3.web-1", "web-1", 3, true},
		{"events.all.b64=d2ViLjE", "web.1", -1, true},
		{"events.03.web-1", "", 0, false},
		{"events.+3.web-1", "", 0, false},
		{"events.-1.web-1", "", 0, false},
		{"events.3.b64=!", "", 0, false},
		{"events.3", "", 0, false},
		{"events.3.a.b", "", 0, false},
		{"windows.3.a", "", 0, false},
	} {
		entry, p, err := subject.Entry(c.subject)
		if entry != c.entry || p != c.partition || (err == nil) != c.ok || err != nil && !errors.Is(err, subject.ErrToken) {
			t.Errorf("%s: got %q, %d, %v", c.subject, entry, p, err)
		}
	}
	for _, c := range []struct {
		subject, group string
		partition      int
		ok             bool
	}{
		{"windows.fast.24", "fast", 24, true},
		{"windows.fast.024", "", 0, false},
		{"windows.fast.x", "", 0, false},
		{"windows..1", "", 0, false},
		{"windows.fast", "", 0, false},
		{"events.fast.1", "", 0, false},
	} {
		group, p, err := subject.PartitionOfWindows(c.subject)
		if group != c.group || p != c.partition || (err == nil) != c.ok {
			t.Errorf("%s: got %q, %d, %v", c.subject, group, p, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "us-east", "b64=YUBiLmM", "b64=YjY0PQ", "b64=YR", "a.b", "b64=\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		id, err := subject.Decode(token)
		if err != nil {
			if !errors.Is(err, subject.ErrToken) || id != "" {
				t.Fatalf("%q: got %q, %v", token, id, err)
			}
			return
		}
		if got := subject.Encode(id); got != token {
			t.Fatalf("%q: %q has the token %q", token, id, got)
		}
	})
}
