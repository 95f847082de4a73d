package baselines

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/golden"
)

// script runs the commands of one golden script (package golden).
//
//	site NAME LAT LON [CAPACITY]
//	akkio KEY=VALUE…              least share lead cooldown
//	place NAME LAT LON
//	stand OWNER SITE BYTES        before the first access
//	ask USER OWNER PLACE BYTES [REQUESTS]     a read; - is nobody and nowhere
//	write USER OWNER PLACE BYTES
//	serves OWNER PLACE            prints who serves a read of the owner's data
//	close                         ends the hour and prints what moves
//	silence HOURS                 without an access
type script struct {
	t      *testing.T
	o      Options
	names  []string // of sites
	sites  []Site
	places map[string][2]float32
	ids    map[string]int32
	by     []string // ids by number
	box    *Box
	end    int64
}

func TestGoldenScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		s := &script{t: t, places: map[string][2]float32{}, ids: map[string]int32{}}
		return golden.EachLine(s.do)
	})
}

func (s *script) do(line string) string {
	f := strings.Fields(line)
	switch f[0] {
	case "site":
		site := Site{Lat: s.number(f[2]), Lon: s.number(f[3])}
		if len(f) > 4 {
			site.Capacity = int64(s.number(f[4]))
		}
		s.names, s.sites = append(s.names, f[1]), append(s.sites, site)
	case "akkio":
		s.akkio(f[1:])
	case "place":
		s.places[f[1]] = [2]float32{float32(s.number(f[2])), float32(s.number(f[3]))}
	case "stand":
		s.start()
		for i, n := range s.names {
			if n == f[2] {
				s.box.Stand(s.id(f[1]), int16(i), int64(s.number(f[3])))
			}
		}
	case "ask", "write":
		s.access(f)
	case "serves":
		return s.serves(f[1], f[2])
	case "close":
		return s.close()
	case "silence":
		s.end += int64(s.number(f[1])) * time.Hour.Microseconds()
	default:
		s.t.Fatalf("unknown command %q", f[0])
	}
	return ""
}

func (s *script) number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *script) akkio(options []string) {
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		switch k {
		case "least":
			s.o.Akkio.Least = int64(s.number(v))
		case "share":
			s.o.Akkio.Share = s.number(v)
		case "lead":
			s.o.Akkio.Lead = s.number(v)
		case "cooldown":
			d, err := time.ParseDuration(v)
			if err != nil {
				s.t.Fatal(err)
			}
			s.o.Akkio.Cooldown = d
		default:
			s.t.Fatalf("unknown option %q", k)
		}
	}
}

func (s *script) start() {
	if s.box == nil {
		s.box = New(s.sites, s.o)
	}
}

func (s *script) id(name string) int32 {
	if name == "-" {
		return None
	}
	n, ok := s.ids[name]
	if !ok {
		n = int32(len(s.ids))
		s.ids[name], s.by = n, append(s.by, name)
	}
	return n
}

func (s *script) place(name string) int32 {
	if name == "-" {
		return None
	}
	p, ok := s.places[name]
	if !ok {
		s.t.Fatalf("no place %q", name)
	}
	return s.box.Places().Find(p[0], p[1])
}

func (s *script) access(f []string) {
	s.start()
	a := Access{User: s.id(f[1]), Owner: s.id(f[2]), Place: s.place(f[3]), Bytes: int64(s.number(f[4])), Requests: 1}
	if f[0] == "write" {
		a.Written = a.Bytes
	} else if len(f) > 5 {
		a.Requests = int64(s.number(f[5]))
	}
	s.box.Access(&a, make([]int16, len(s.box.Strategies())))
}

func (s *script) site(i int16) string {
	if i < 0 {
		return "nobody"
	}
	return s.names[i]
}

// serves asks without the ledger's counting it.
func (s *script) serves(owner, place string) string {
	var out strings.Builder
	a := Access{Owner: s.id(owner), User: None, Place: s.place(place)}
	for _, st := range s.box.Strategies() {
		fmt.Fprintf(&out, "%s: %s\n", st.Name(), s.site(st.Access(&a)))
	}
	return out.String()
}

func (s *script) close() string {
	s.start()
	s.end += time.Hour.Microseconds()
	var out strings.Builder
	for i, moved := range s.box.Close(s.end) {
		for _, m := range moved {
			what, to := "copies", "all others"
			if m.Owner >= 0 {
				what, to = s.by[m.Owner], s.site(m.To)
			}
			fmt.Fprintf(&out, "%s: %s %s → %s, %d B\n", s.box.Strategies()[i].Name(), what, s.site(m.From), to, m.Bytes)
		}
	}
	if out.Len() == 0 {
		return "nothing moves\n"
	}
	return out.String()
}
