package follow

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestFamilyOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"access.log":                       "access.log",
		"access.log.1":                     "access.log",
		"access.log.12.gz":                 "access.log",
		"access.log-20260131":              "access.log",
		"access.log-20260131.gz":           "access.log",
		"access.log-2026013123":            "access.log",
		"access.log-1769900000.zst":        "access.log",
		"access.log.2026-01-31":            "access.log",
		"access.log.2026-01-31.bz2":        "access.log",
		"access.log.2026-01-31T10:11:12Z":  "access.log",
		"access.log.old":                   "access.log",
		"access.1.log":                     "access.log",
		"access-2026-01-31.log":            "access.log",
		"access-2026-01-31.log.gz":         "access.log",
		"access_2026-01-31.log":            "access.log",
		"0.log":                            "0.log",
		"0.log.20260131-235959":            "0.log",
		"0.log.20260131-235959.gz":         "0.log",
		"site-a.example.com-access.log":    "site-a.example.com-access.log",
		"app-1.log":                        "app-1.log",
		"app-2.log.3":                      "app-2.log",
		"access":                           "access",
		"access.7":                         "access",
		"1":                                "1",
		".1":                               ".1",
		"other_vhosts_access.log.1.gz.tmp": "other_vhosts_access.log",
	} {
		if got := familyOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if rotatedName(name) != (name != want) {
			t.Errorf("%s: rotated %v", name, rotatedName(name))
		}
	}
}

func TestHorizonOf(t *testing.T) {
	t.Parallel()
	const now, disorder = 1_000_000, 100
	for name, tc := range map[string]struct {
		sofar, scanned int64
		bounds         []bound
		want           int64
	}{
		"nothing is followed":            {0, 990_000, nil, 989_900},
		"all are read":                   {0, now, []bound{{checked: 999_000}, {checked: 998_000}}, 997_900},
		"one is behind":                  {0, now, []bound{{checked: 999_000}, {behind: true, last: 5000, checked: 999_500}}, 4900},
		"one is behind, nothing is read": {700, now, []bound{{checked: 999_000}, {behind: true}}, 700},
		"it never goes back":             {7000, now, []bound{{behind: true, last: 5000}}, 7000},
		"rows ahead of the clock":        {0, now, []bound{{behind: true, last: 5_000_000}}, 999_900},
		"nothing was ever said":          {math.MinInt64, now, []bound{{behind: true}}, math.MinInt64},
	} {
		if got := horizonOf(tc.sofar, now, tc.scanned, disorder, tc.bounds); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestPositionRoundTrip writes any position and reads it again.
func TestPositionRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := position{horizon: rapid.Int64().Draw(t, "horizon"), scanned: rapid.Int64().Draw(t, "scanned")}
		for range rapid.IntRange(0, 5).Draw(t, "streams") {
			from := rapid.Int64Range(0, 1<<50).Draw(t, "from")
			p.streams = append(p.streams, known{
				pattern: rapid.String().Draw(t, "pattern"), path: rapid.String().Draw(t, "path"), real: rapid.String().Draw(t, "real"),
				state:  state(rapid.IntRange(0, int(done)).Draw(t, "state")),
				id:     fileID{rapid.Uint64().Draw(t, "dev"), rapid.Uint64().Draw(t, "ino")},
				head:   fingerprint{rapid.IntRange(0, headMost).Draw(t, "head"), rapid.Uint64().Draw(t, "sum")},
				tail:   fingerprint{rapid.IntRange(0, tailMost).Draw(t, "tail"), rapid.Uint64().Draw(t, "sum")},
				start:  []byte(rapid.String().Draw(t, "start")),
				from:   spot{from, rapid.Int64Range(0, 1<<40).Draw(t, "lines"), rapid.Bool().Draw(t, "skipping")},
				offset: from + rapid.Int64Range(0, 1<<20).Draw(t, "more"),
				within: rapid.Int64Range(0, 1<<20).Draw(t, "within"),
				last:   rapid.Int64().Draw(t, "last"), since: rapid.Int64().Draw(t, "since"), rested: rapid.Int64().Draw(t, "rested"),
				good: rapid.Bool().Draw(t, "good"),
			})
		}
		b := p.append(nil)
		got, err := parsePosition(b)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v: %+v, %v", p, got, err)
		}
		cut := rapid.IntRange(1, len(b)-1).Draw(t, "cut")
		if _, err := parsePosition(b[:cut]); !errors.Is(err, ErrPosition) {
			t.Fatalf("cut at %d of %d: %v", cut, len(b), err)
		}
	})
}

// FuzzPosition reads any bytes as a position: no panic, and what is taken can be
// written again.
func FuzzPosition(f *testing.F) {
	p := position{horizon: 5, scanned: 6, streams: []known{{pattern: "a*", path: "a", real: "a", offset: 7, start: []byte("x")}}}
	f.Add(p.append(nil))
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 200, 200, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePosition(b)
		if err != nil {
			return
		}
		again, err := parsePosition(p.append(nil))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%+v: %+v, %v", p, again, err)
		}
	})
}
