package checkins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"penstock/infra/golden"
	"penstock/infra/shareddata"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

func TestGoldenSmallTown(t *testing.T) {
	golden.File(t, "requests.golden", readFiles("testdata/events.tsv", "testdata/friends.tsv", Options{Reads: 3, Seed: 1}).String())
}

// lines of a file, in another order each time.
func shuffled(t *testing.T, file string, seed uint64) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return save(t, "shuffled", strings.Join(lines, "\r\n"))
}

func TestOrderOfLinesChangesNothing(t *testing.T) {
	want := readFiles("testdata/events.tsv", "testdata/friends.tsv", Options{Reads: 20, Seed: 7}).String()
	for seed := range uint64(10) {
		got := readFiles(shuffled(t, "testdata/events.tsv", seed), shuffled(t, "testdata/friends.tsv", seed), Options{Reads: 20, Seed: 7}).String()
		if got != want {
			t.Fatalf("in another order:\n%s\nexpected:\n%s", got, want)
		}
	}
	if readFiles("testdata/events.tsv", "testdata/friends.tsv", Options{Reads: 20, Seed: 8}).String() == want {
		t.Error("another seed gave the same requests")
	}
}

// Reads go to friends in proportion to the social level, and their times are
// even over the minute.
func TestReadsAreInProportion(t *testing.T) {
	const reads = 40_000
	events := save(t, "e", "a\t2010-10-19 12:00:00+0000\t1\t1\tx\nb\t2010-10-19 11:00:00+0000\t2\t2\tx\nc\t2010-10-19 11:00:00+0000\t3\t3\tx\n"+
		"d\t2010-10-19 12:00:01+0000\t4\t4\tx\n")
	// d has no place yet when a checks in; e never has one.
	friends := save(t, "f", "a\tb\t1\na\tc\t3\na\td\t9\na\te\t9\n")
	got := readFiles(events, friends, Options{Reads: reads, Seed: 3})
	count := map[string]float64{}
	var sum float64
	for i := range got.rows {
		r := &got.rows[i]
		if r.Op != event.Read || r.Owner != "a" {
			continue
		}
		count[r.User]++
		after := r.Time - 1_287_489_600_000_000
		if after < minDelay || after > maxDelay {
			t.Fatalf("a read %d µs after the write", after)
		}
		sum += float64(after)
		if r.User == "c" && (r.Lat != 3 || r.Lon != 3) {
			t.Fatalf("c reads at %v, %v", r.Lat, r.Lon)
		}
	}
	// Four standard deviations of a binomial and of a mean of even numbers.
	if d := math.Abs(count["c"] - 0.75*reads); d > 4*math.Sqrt(reads*0.75*0.25) || count["b"]+count["c"] != reads {
		t.Errorf("reads by user: %v", count)
	}
	if d := math.Abs(sum/reads - 30_500_000); d > 4*59e6/math.Sqrt(12*reads) {
		t.Errorf("mean delay %v µs", sum/reads)
	}
}

func TestAgreesWithASlowOracle(t *testing.T) {
	dir := t.TempDir()
	users := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		type in struct {
			user     string
			time     int
			lat, lon int
		}
		var all []in
		var events, friends strings.Builder
		for i := range rapid.IntRange(1, 12).Draw(t, "events") {
			e := in{rapid.SampledFrom(users).Draw(t, "user"), rapid.IntRange(0, 59).Draw(t, "s"), i, -i}
			all = append(all, e)
			fmt.Fprintf(&events, "%s\t2010-10-19 12:00:%02d+0000\t%d\t%d\tv\n", e.user, e.time, e.lat, e.lon)
		}
		level := map[[2]string]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "edges") {
			a, b := rapid.SampledFrom(users).Draw(t, "a"), rapid.SampledFrom(users).Draw(t, "b")
			level[[2]string{a, b}], level[[2]string{b, a}] = true, true
			fmt.Fprintf(&friends, "%s\t%s\n", a, b)
		}
		e, f := filepath.Join(dir, "e"), filepath.Join(dir, "f")
		if err := errors.Join(os.WriteFile(e, []byte(events.String()), 0o644), os.WriteFile(f, []byte(friends.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
		const reads = 4
		got := readFiles(e, f, Options{Reads: reads, Seed: 1})
		if got.err != nil {
			t.Fatal(got.err)
		}
		if !slices.IsSortedFunc(got.rows, func(a, b event.Request) int { return cmp.Compare(a.Time, b.Time) }) {
			t.Fatal("not in order of time")
		}
		// Which friends can read a check-in, and where from.
		unlocated := 0
		for _, c := range all {
			can := 0
			for _, u := range users {
				if u == c.user || !level[[2]string{u, c.user}] {
					continue
				}
				if slices.ContainsFunc(all, func(o in) bool { return o.user == u && o.time <= c.time }) {
					can++
				}
			}
			if can == 0 {
				unlocated += reads
			}
		}
		if int(got.stats.Unlocated) != unlocated || int(got.stats.CheckIns) != len(all) || int(got.stats.Reads)+unlocated != reads*len(all) {
			t.Fatalf("%+v, expected %d unlocated", got.stats, unlocated)
		}
		for i := range got.rows {
			r := &got.rows[i]
			if r.Op == event.Write {
				if r.User != r.Owner {
					t.Fatalf("a write of another's data: %+v", r)
				}
				continue
			}
			if r.User == r.Owner || !level[[2]string{r.User, r.Owner}] {
				t.Fatalf("%s is no friend of %s", r.User, r.Owner)
			}
			// Some check-in of the owner, at most a minute ago, at which this
			// was the reader's last place.
			if !slices.ContainsFunc(all, func(c in) bool {
				at := 1_287_489_600_000_000 + int64(c.time)*1_000_000
				if c.user != r.Owner || r.Time < at+minDelay || r.Time > at+maxDelay {
					return false
				}
				latest := -1
				for _, o := range all {
					if o.user == r.User && o.time <= c.time {
						latest = max(latest, o.time)
					}
				}
				return slices.ContainsFunc(all, func(o in) bool { return o.user == r.User && o.time == latest && float32(o.lat) == r.Lat })
			}) {
				t.Fatalf("nothing causes %+v in\n%s", r, events.String())
			}
		}
	})
}

func TestRepeatsAreCheckInsOfTheirOwn(t *testing.T) {
	line := "a\t2010-10-19 12:00:00+0000\t1\t1\tx\n"
	got := readFiles(save(t, "e", line+"b\t2010-10-19 11:00:00+0000\t2\t2\tx\n"+line), save(t, "f", "a\tb\n"), Options{Reads: 5, Seed: 1})
	if got.stats.CheckIns != 3 || got.stats.Reads != 10 || got.stats.Unlocated != 5 {
		t.Errorf("%+v", got.stats)
	}
	times := map[int64]bool{}
	for i := range got.rows {
		if got.rows[i].Op == event.Read {
			times[got.rows[i].Time] = true
		}
	}
	if len(times) != 10 {
		t.Errorf("reads at %d times: both repeats drew the same", len(times))
	}
}

func TestBadLines(t *testing.T) {
	good := "a\t2010-10-19 12:00:00+0000\t1\t1\tx"
	for line, want := range map[string]string{
		"a\t2010-10-19 12:00:00+0000\t1":                               `field line: got "3 columns", expected user, time`,
		good + "\tmore":                                                `field line: got "6 columns"`,
		"\t2010-10-19 12:00:00+0000\t1\t1\tx":                          `field user: got "", expected an id`,
		"-\t2010-10-19 12:00:00+0000\t1\t1\tx":                         `field user: got "-", expected an id`,
		strings.Repeat("u", 5000) + "\t2010-10-19 12:00:00+0000\t1\t1": "expected at most 1024 bytes",
		"\xff\t2010-10-19 12:00:00+0000\t1\t1\tx":                      "expected UTF-8",
		"a\t2010-10-19\t1\t1\tx":                                       `field time: got "2010-10-19", expected a time such as`,
		"a\t1710-10-19 12:00:00+0000\t1\t1\tx":                         "field time",
		"a\t2010-10-19 12:00:00+0000\t91\t1\tx":                        `field latitude: got "91"`,
		"a\t2010-10-19 12:00:00+0000\t\t1\tx":                          `field latitude: got ""`,
		"a\t2010-10-19 12:00:00+0000\t1\tNaN\tx":                       `field longitude: got "NaN"`,
	} {
		got := readFiles(save(t, "events", good+"\n"+line+"\n"), save(t, "friends", "a\tb\n"), Options{})
		if got.err != nil || got.stats.CheckIns != 1 || got.stats.Bad != 1 || len(got.bad) != 1 ||
			got.bad[0].Line != 2 || !strings.Contains(got.bad[0].Error(), want) || filepath.Base(got.bad[0].File) != "events" {
			t.Errorf("%.60q: %v %v", line, got, got.err)
		}
	}
	for line, want := range map[string]string{
		"a":           `field line: got "1 columns", expected two users`,
		"a\tb\t1\t2":  `got "4 columns"`,
		"a,b,c":       `field level: got "c"`,
		"a,b\tc,d\te": `field level: got "e"`,
		"a\t":         `field friend: got ""`,
		"\ta":         `field user: got ""`,
		"a\tb\t0":     `field level: got "0", expected a whole number`,
		"a\tb\t1.5":   `field level: got "1.5"`,
		"a b":         `got "1 columns"`,
	} {
		got := readFiles(save(t, "events", good), save(t, "friends", "a\tb\n"+line+"\n"), Options{})
		if got.err != nil || got.stats.Bad != 1 || len(got.bad) != 1 || !strings.Contains(got.bad[0].Error(), want) {
			t.Errorf("%q: %v %v", line, got, got.err)
		}
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	good, edges := save(t, "e", "a\t2010-10-19 12:00:00+0000\t1\t1\tx\n"), save(t, "f", "a\tb\n")
	gone := filepath.Join(t.TempDir(), "gone")
	for name, test := range map[string]struct {
		events, friends string
		o               Options
		want            error
	}{
		"no events":      {gone, edges, Options{}, os.ErrNotExist},
		"no friends":     {good, gone, Options{}, os.ErrNotExist},
		"other events":   {edges, edges, Options{}, recording.ErrNothingParses},
		"other friends":  {good, good, Options{}, recording.ErrNothingParses},
		"cut":            {save(t, "e.gz", "\x1f\x8b\x08"), edges, Options{}, recording.ErrDamaged},
		"negative reads": {good, edges, Options{Reads: -1}, ErrOption},
		"too many reads": {good, edges, Options{Reads: 1 << 20}, ErrOption},
		"negative bytes": {good, edges, Options{Bytes: -1}, ErrOption},
	} {
		if got := readFiles(test.events, test.friends, test.o); !errors.Is(got.err, test.want) || len(got.rows) > 0 {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, good, edges, Options{}, func(*event.Request) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stop := errors.New("stop")
	if _, err := Read(context.Background(), good, edges, Options{}, func(*event.Request) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestGowalla(t *testing.T) {
	dir := shareddata.Dir(t, "gowalla-head10k")
	events, friends := filepath.Join(dir, "gowalla_events.tsv.gz"), filepath.Join(dir, "gowalla_users.tsv.gz")
	files := make([]string, 2)
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "rec.parquet")
		w, err := recording.Create(files[i], recording.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := Read(context.Background(), events, friends, Options{Reads: DefaultReads, Seed: 1}, w.Write)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		want := Stats{CheckIns: 10_000, Reads: 69_060, Unlocated: 30_940, Users: 48, Edges: 10_000}
		if stats != want || w.Rows() != want.CheckIns+want.Reads {
			t.Errorf("%+v, %d rows, expected %+v", stats, w.Rows(), want)
		}
	}
	a, err := recording.Digest(context.Background(), files[:1])
	b, err2 := recording.Digest(context.Background(), files[1:])
	if err := errors.Join(err, err2); err != nil || a != b {
		t.Errorf("the same seed gave %s and %s, %v", a, b, err)
	}
}

func FuzzEvent(f *testing.F) {
	f.Add([]byte("0\t2010-10-19 23:55:27+0000\t30.2359091167\t-97.7951395833\t22847"))
	f.Add([]byte("0\t2010-10-19T23:55:27Z\t30\t-97"))
	f.Add([]byte("\t\t\t\t\t"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var c checkIn
		user, fault := parseEvent(line, &c)
		if fault != nil {
			if fault.Field == "" || fault.Expected == "" {
				t.Errorf("a fault without a place: %+v", fault)
			}
			return
		}
		r := event.NewRequest(c.time)
		r.User, r.Lat, r.Lon = string(user), c.lat, c.lon
		if err := r.Check(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzFriendship(f *testing.F) {
	f.Add([]byte("0\t1"))
	f.Add([]byte("ann,ben,3"))
	f.Add([]byte("a\tb\t9223372036854775807"))
	f.Fuzz(func(t *testing.T, line []byte) {
		a, b, level, fault := parseFriendship(line)
		if fault != nil {
			if fault.Field == "" || fault.Expected == "" {
				t.Errorf("a fault without a place: %+v", fault)
			}
			return
		}
		r := event.NewRequest(0)
		r.User, r.Owner = string(a), string(b)
		if err := r.Check(); err != nil || len(a) == 0 || len(b) == 0 || level < 1 || level > MaxLevel {
			t.Errorf("%q, %q, level %d: %v", a, b, level, err)
		}
	})
}
