package line

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"penstock/infra/golden"
)

// TestScripts are the paper's three algorithms (PAPERS §2.4) worked by hand: the
// numbers are explained in the comments of the scripts and shown by the steps. Times
// are in s. Commands:
//
//	algorithm A1|A2|A3
//	server NAME [wait=BIAS,PERSTATIC,PERDYNAMIC]
//	at T
//	put SERVER NAME d=D p=P [t=T] [static=B] [dynamic=B]     straight into its line
//	arrive NAME limit=T p=P t=T,T… [static=B] [dynamic=B]     t on each server
//	free SERVER                                              one may be in service more
//	line SERVER
//
// What is shown is computed here, from the items alone and by the paper's formulas,
// and held to what the line and its plain form say.
func TestScripts(t *testing.T) {
	t.Parallel()
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		return golden.EachLine((&scene{t: t, names: map[uint64]string{}}).line)
	})
}

// scene is a zone whose requests have names.
type scene struct {
	t         *testing.T
	algorithm string
	servers   []*server
	names     map[uint64]string
	now       int64
	out       strings.Builder
}

type server struct {
	name  string
	line  *Line
	plain *Plain
	wait  Wait
}

func (s *scene) line(line string) string {
	s.out.Reset()
	words := strings.Fields(line)
	var args []string
	options := map[string]string{}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(w, "="); ok {
			options[key] = value
		} else {
			args = append(args, w)
		}
	}
	switch words[0] {
	case "algorithm":
		s.algorithm = args[0]
	case "server":
		s.server(args[0], options)
	case "at":
		s.now = ns(s.number(args[0]))
	case "put":
		v, it := s.find(args[0]), s.item(args[1], options)
		it.Deadline, it.Service = ns(s.number(options["d"])), s.number(options["t"])
		s.put(v, it)
	case "arrive":
		s.arrive(s.item(args[0], options), options)
	case "free":
		s.free(s.find(args[0]))
	case "line":
		s.show(s.find(args[0]))
	default:
		s.t.Fatalf("no command is %q", line)
	}
	return s.out.String()
}

func (s *scene) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *scene) number(text string) float64 {
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *scene) server(name string, options map[string]string) {
	d := map[string]Discipline{"A1": Deadline, "A2": Cheapest, "A3": Lateness}[s.algorithm]
	v := &server{name: name, line: New(d), plain: NewPlain(d)}
	if w := strings.Split(options["wait"], ","); len(w) == 3 {
		v.wait = Wait{s.number(w[0]), s.number(w[1]), s.number(w[2])}
	}
	s.servers = append(s.servers, v)
}

func (s *scene) find(name string) *server {
	k := slices.IndexFunc(s.servers, func(v *server) bool { return v.name == name })
	if k < 0 {
		s.t.Fatalf("no server is %q", name)
	}
	return s.servers[k]
}

func (s *scene) item(name string, options map[string]string) Item {
	id := uint64(len(s.names) + 1)
	s.names[id] = name
	return Item{
		ID: id, Arrived: s.now, Penalty: s.number(options["p"]),
		Static: s.number(options["static"]), Dynamic: s.number(options["dynamic"]),
	}
}

// put puts the item in and holds both forms to each other.
func (s *scene) put(v *server, it Item) int {
	place, plain := v.line.Insert(s.now, it), v.plain.Insert(s.now, it)
	if place != plain {
		s.t.Fatalf("%s goes to %v, plainly %v", s.names[it.ID], place, plain)
	}
	return place.Index
}

func (s *scene) arrive(it Item, options map[string]string) {
	times := strings.Split(options["t"], ",")
	if len(times) != len(s.servers) {
		s.t.Fatalf("%d service times of %d servers", len(times), len(s.servers))
	}
	best, least := 0, math.Inf(1)
	items := make([]Item, len(s.servers))
	for i, v := range s.servers {
		it.Service = s.number(times[i])
		it.Deadline = s.now + ns(s.number(options["limit"])) - ns(it.Service)
		items[i] = it
		if cost := s.cost(v, it); cost < least {
			best, least = i, cost
		}
	}
	v, it := s.servers[best], items[best]
	if s.algorithm == "A2" {
		s.walk(v, it)
	}
	s.say("  %s goes to %s, place %d", s.names[it.ID], v.name, s.put(v, it))
}

// cost is what the algorithm takes the server with the least of.
func (s *scene) cost(v *server, it Item) float64 {
	switch s.algorithm {
	case "A1":
		return s.increase(v, it)
	case "A2":
		s.say("  %s: %d waiting", v.name, v.line.Len())
		return float64(v.line.Len())
	default:
		return -s.spread(v, it)
	}
}

// increase shows the penalties of A1.
func (s *scene) increase(v *server, it Item) float64 {
	k := slices.IndexFunc(v.plain.items, func(x Item) bool { return x.Deadline > it.Deadline })
	if k < 0 {
		k = len(v.plain.items)
	}
	var static, dynamic, after, before float64
	start := func(static, dynamic float64) float64 {
		return seconds(s.now) + max(0, v.wait.Bias+v.wait.PerStatic*static+v.wait.PerDynamic*dynamic)
	}
	for _, x := range v.plain.items[:k] {
		static += x.Static
		dynamic += x.Dynamic
	}
	d := seconds(it.Deadline)
	own := start(static, dynamic)
	after = it.Penalty * max(0, own-d)
	s.say("  %s, place %d", v.name, k)
	s.say("    %s d=%s starts %s penalty %s", s.names[it.ID], show(d), show(own), show(after))
	for _, x := range v.plain.items[k:] {
		d := seconds(x.Deadline)
		without, with := start(static, dynamic), start(static+it.Static, dynamic+it.Dynamic)
		least, most := x.Penalty*max(0, without-d), x.Penalty*max(0, with-d)
		s.say("    %s d=%s starts %s, before %s penalty %s, before %s",
			s.names[x.ID], show(d), show(with), show(without), show(most), show(least))
		after += most
		before += least
		static += x.Static
		dynamic += x.Dynamic
	}
	s.say("    after %s − before %s = %s", show(after), show(before), show(after-before))
	for what, q := range map[string]queue{"the line": v.line, "the plain line": v.plain} {
		a, b := q.Increase(s.now, it, v.wait)
		s.same(what+": after", a, after)
		s.same(what+": before", b, before)
	}
	return after - before
}

// walk shows the comparisons of A2.
func (s *scene) walk(v *server, it Item) {
	items := v.plain.items
	k := slices.IndexFunc(items, func(x Item) bool { return x.Deadline > it.Deadline })
	if k < 0 {
		k = len(items)
	}
	s.say("  by its deadline %s place %d", show(seconds(it.Deadline)), k)
	place := k
	for j := len(items); j > k && place == k; j-- {
		x := items[j-1]
		var ahead float64 // Σ t̂_l, l < j
		for _, l := range items[:j-1] {
			ahead += l.Service
		}
		now := seconds(s.now)
		behind := max(0, now+ahead+x.Service-seconds(it.Deadline)) * it.Penalty
		front := max(0, now+ahead+it.Service-seconds(x.Deadline)) * x.Penalty
		s.say("    behind %s it loses %s; passed, %s loses %s",
			s.names[x.ID], show(behind), s.names[x.ID], show(front))
		if front > behind {
			place = j
		}
	}
	if got := v.line.Place(s.now, it).Index; got != place {
		s.t.Errorf("the line puts %s at %d, not %d", s.names[it.ID], got, place)
	}
}

// spread shows the deviations of A3.
func (s *scene) spread(v *server, it Item) float64 {
	var text []string
	var slacks []float64
	for _, x := range append(slices.Clone(v.plain.items), it) {
		slack := seconds(x.Deadline - s.now)
		word := s.names[x.ID] + " " + show(slack)
		if slack < 0 {
			word += " (over)"
		} else {
			slacks = append(slacks, slack)
		}
		text = append(text, word)
	}
	var mean, squares float64
	for _, x := range slacks {
		mean += x / float64(len(slacks))
	}
	for _, x := range slacks {
		squares += (x - mean) * (x - mean)
	}
	deviation := 0.0
	if len(slacks) > 0 {
		deviation = math.Sqrt(squares / float64(len(slacks)))
	}
	score := deviation / float64(len(text))
	s.say("  %s: s of %s: deviation %s / %d = %s",
		v.name, strings.Join(text, ", "), show(deviation), len(text), show(score))
	s.same("the line's spread", v.line.Spread(s.now, it), score)
	s.same("the plain line's spread", v.plain.Spread(s.now, it), score)
	return score
}

// free takes out the next one. Of A3 it shows what the others' penalties are.
func (s *scene) free(v *server) {
	if v.line.Len() == 0 {
		s.say("  nobody waits at %s", v.name)
		return
	}
	want := v.plain.items[0].ID
	if s.algorithm == "A3" {
		least := math.Inf(1)
		for k, x := range v.plain.items {
			var others float64
			for j, y := range v.plain.items {
				if j != k {
					others += max(0, seconds(s.now-y.Deadline)) * y.Penalty
				}
			}
			s.say("    without %s the others' penalties are %s", s.names[x.ID], show(others))
			if others < least-1e-12 {
				least, want = others, x.ID
			}
		}
	}
	got, _ := v.line.Pop(s.now)
	plain, _ := v.plain.Pop(s.now)
	if got.ID != want || plain.ID != want {
		s.t.Errorf("%s has taken %s, plainly %s, not %s", v.name, s.names[got.ID], s.names[plain.ID], s.names[want])
	}
	s.say("  %s takes %s, penalty %s", v.name, s.names[got.ID], show(got.Penalty*max(0, seconds(s.now-got.Deadline))))
}

func (s *scene) show(v *server) {
	var words []string
	v.line.Each(func(it Item) bool {
		words = append(words, s.names[it.ID]+" d="+show(seconds(it.Deadline)))
		return true
	})
	s.say("  %s: %s", v.name, strings.Join(words, ", "))
	potential := v.line.Potential(s.now, v.wait)
	s.same("potential", potential, v.plain.Potential(s.now, v.wait))
	if s.algorithm == "A1" {
		s.say("  %s: potential penalty %s", v.name, show(potential))
	}
}

func (s *scene) same(what string, got, want float64) {
	if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
		s.t.Errorf("%s is %v, by hand %v", what, got, want)
	}
}

func ns(s float64) int64 { return int64(math.Round(s * perSecond)) }

// show prints a number as one would write it by hand.
func show(x float64) string {
	return strconv.FormatFloat(math.Round(x*1e6)/1e6+0, 'f', -1, 64)
}
