package span

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"penstock/schemas/event"
)

func TestKinds(t *testing.T) {
	for text, want := range map[string]Kind{
		"SERVER": Server, "server": Server, "SPAN_KIND_SERVER": Server, "span_kind_client": Client, "Producer": Producer,
		"CONSUMER": Consumer, "internal": Internal, "": Unspecified, "SPAN_KIND_": Unspecified, "other": Unspecified,
	} {
		if got := ParseKind(text); got != want {
			t.Errorf("%q: %s, expected %s", text, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		start, end uint64
		s, d       int64
		backwards  bool
		ok         bool
	}{
		{5, 9, 5, 4, false, true},
		{5, 5, 5, 0, false, true},
		{5, 0, 5, Unknown, false, true},
		{0, 9, Unknown, Unknown, false, true},
		{9, 5, 9, Unknown, true, true}, // never 0, never negative
		{math.MaxUint64, 5, 0, 0, false, false},
	} {
		var s Span
		s.Reset()
		err := s.Times(c.start, c.end)
		if (err == nil) != c.ok || c.ok && (s.Start != c.s || s.Duration != c.d || s.Backwards != c.backwards) {
			t.Errorf("%d to %d: %d for %d, %v, %v", c.start, c.end, s.Start, s.Duration, s.Backwards, err)
		}
	}
	var s Span
	if err := s.Micros(math.MaxInt64/10, 1); !errors.Is(err, ErrMalformed) {
		t.Errorf("µs that are too many: %v", err)
	}
	if err := s.Micros(7, -3); err != nil || s.Start != 7000 || s.Duration != Unknown || !s.Backwards {
		t.Errorf("%+v, %v", s, err)
	}
}

func good() Span {
	var s Span
	s.Reset()
	s.Trace[0], s.ID[0], s.Start, s.Duration = 1, 1, 1_700_000_000_000_000_000, 5
	return s
}

func TestCheck(t *testing.T) {
	s := good()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Span){
		"no trace":     func(s *Span) { s.Trace = Trace{} },
		"no id":        func(s *Span) { s.ID = ID{} },
		"start":        func(s *Span) { s.Start = math.MaxInt64 },
		"duration":     func(s *Span) { s.Duration = math.MaxInt64 },
		"negative":     func(s *Span) { s.Duration = -1 },
		"bytes":        func(s *Span) { s.Bytes = -1 },
		"long text":    func(s *Span) { s.Class = strings.Repeat("x", event.MaxID+1) },
		"not UTF-8":    func(s *Span) { s.Site = "\xff" },
		"end too late": func(s *Span) { s.Start, s.Duration = event.MaxTime*1000, 1_000_000 },
	} {
		s := good()
		spoil(&s)
		if err := s.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mapped fills a span from attributes of its resource and its own, as pairs.
func mapped(t *testing.T, r Rules, k Kind, resource, own []string) Span {
	t.Helper()
	m, err := NewMapper(r)
	if err != nil {
		t.Fatal(err)
	}
	// What another resource had is gone.
	m.Resource()
	m.ResourceAttr("service.name", "another")
	m.ResourceAttr("cloud.region", "another")
	m.Resource()
	for i := 0; i < len(resource); i += 2 {
		m.ResourceAttr(resource[i], resource[i+1])
	}
	m.Begin()
	m.Attr("http.route", "/another")
	m.Begin()
	for i := 0; i < len(own); i += 2 {
		m.Attr(own[i], own[i+1])
	}
	s := good()
	s.Kind = k
	m.Fill(&s)
	return s
}

func TestMapper(t *testing.T) {
	s := mapped(t, Rules{}, Client, []string{
		"k8s.cluster.name", "k1", "cloud.availability_zone", "eu-1a", "cloud.region", "eu-1",
		"k8s.pod.name", "shop-579b9bff58-t2dbm", "service.name", "unknown_service:java", "host.name", "h",
	}, []string{"db.system", "postgresql", "http.method", "DELETE", "http.status_code", "404", "request_size", "7", "response_size", "5"})
	if s.Component != "shop" || s.Site != "eu-1" || s.Server != "shop-579b9bff58-t2dbm" || s.Callee != "postgresql" || s.Caller != "" ||
		s.Op != event.Write || s.Status != 404 || s.Bytes != 12 || s.Class != "" {
		t.Errorf("%+v", s)
	}
	// A server's peer is who called; its own address is not whom it calls.
	s = mapped(t, Rules{}, Server, []string{"service.name", "cart"}, []string{"peer.service", "shop", "server.address", "cart.local", "http.route", "/x"})
	if s.Component != "cart" || s.Caller != "shop" || s.Callee != "" || s.Class != "/x" || s.Status != event.NullStatus || s.Op != event.Read {
		t.Errorf("%+v", s)
	}
	for code, want := range map[string]int32{"0": 200, "14": 503, "DEADLINE_EXCEEDED": 504, "99": event.NullStatus, "x": event.NullStatus} {
		if s := mapped(t, Rules{}, Server, nil, []string{"rpc.grpc.status_code", code}); s.Status != want {
			t.Errorf("gRPC %s: status %d, expected %d", code, s.Status, want)
		}
	}
	for e, want := range map[string]int32{"true": 500, "false": event.NullStatus, "ERROR": 500, "OK": event.NullStatus} {
		if s := mapped(t, Rules{}, Server, nil, []string{"error", e}); s.Status != want {
			t.Errorf("error %s: status %d, expected %d", e, s.Status, want)
		}
	}
}

// A regexp that does not match leaves the column to the next source.
func TestRulesInOrder(t *testing.T) {
	r := Rules{Sites: map[string]string{"b": "site-b"}}
	var err error
	if r.Site, err = ParseSources([]string{`zone=^(..)-`, "dc", "=home"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ zone, dc, want string }{
		{"eu-1", "a", "eu"},
		{"nowhere", "a", "a"},
		{"nowhere", "b", "site-b"},
		{"", "", "home"},
	} {
		if s := mapped(t, r, Server, []string{"dc", c.dc, "zone", c.zone}, nil); s.Site != c.want {
			t.Errorf("zone %q, dc %q: %q, expected %q", c.zone, c.dc, s.Site, c.want)
		}
	}
}

// Ids in hexadecimal are read back as they were written, and nothing else is read
// as an id.
func FuzzIDs(f *testing.F) {
	for _, s := range []string{"", "1", "5b8efff798038103d269b633813fc60c", "W47/95gDgQPSabYzgT/GDA==", "7uGbfsPBsXU=", "xyz", "EEE19B7EC3C1B174"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseTrace(s); err == nil {
			padded := strings.Repeat("0", max(0, 32-len(s))) + strings.ToLower(s)
			if id.String() != padded {
				t.Fatalf("%q: %s", s, id)
			}
		} else if !errors.Is(err, ErrMalformed) || id != (Trace{}) {
			t.Fatalf("%q: %s, %v", s, id, err)
		}
		id, err := ParseProtoID(s)
		switch {
		case err != nil:
			if !errors.Is(err, ErrMalformed) || id != (ID{}) {
				t.Fatalf("%q: %s, %v", s, id, err)
			}
		case len(s) == 16:
			if want, err := hex.DecodeString(s); err != nil || string(want) != string(id[:]) {
				t.Fatalf("%q: %s", s, id)
			}
		case s != "":
			if again := base64.RawStdEncoding.EncodeToString(id[:]); again[:10] != strings.NewReplacer("-", "+", "_", "/").Replace(s)[:10] {
				t.Fatalf("%q: %s", s, id)
			}
		}
	})
}
