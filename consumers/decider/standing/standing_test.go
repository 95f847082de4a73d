package standing_test

import (
	"testing"

	"penstock/consumers/decider"
	"penstock/consumers/decider/standing"
	"penstock/schemas/control"
)

func TestOneExecutorIsEnough(t *testing.T) {
	type answer struct {
		epoch  uint64
		status control.Status
	}
	for name, c := range map[string]struct {
		answers []answer
		nobody  bool
		want    standing.Standing
	}{
		"no answer":                   {nil, false, standing.Standing{Epoch: 4, Done: 3}},
		"applied":                     {[]answer{{4, control.Done}}, false, standing.Standing{Epoch: 4, Done: 4}},
		"applied before":              {[]answer{{4, control.AlreadyApplied}}, false, standing.Standing{Epoch: 4, Done: 4}},
		"refused":                     {[]answer{{4, control.Refused}}, true, standing.Standing{Epoch: 4, Done: 3, Refused: "hash", Failed: 1}},
		"failed":                      {[]answer{{4, control.Failed}}, true, standing.Standing{Epoch: 4, Done: 3, Refused: "hash", Failed: 1}},
		"refused by one, then taken":  {[]answer{{4, control.Refused}, {4, control.Done}}, false, standing.Standing{Epoch: 4, Done: 4}},
		"taken, then refused by one":  {[]answer{{4, control.Done}, {4, control.Refused}}, false, standing.Standing{Epoch: 4, Done: 4}},
		"an answer of an older epoch": {[]answer{{3, control.Refused}}, false, standing.Standing{Epoch: 4, Done: 3}},
		"a greater epoch":             {[]answer{{9, control.Done}, {4, control.Refused}}, false, standing.Standing{Epoch: 9, Done: 9}},
	} {
		s := standing.Standing{Epoch: 4, Done: 3}
		for _, a := range c.answers {
			s.Take(&control.Outcome{Epoch: a.epoch, Status: a.status})
		}
		if nobody := s.Judge("hash"); nobody != c.nobody || s != c.want {
			t.Errorf("%s: got %v, %+v\nexpected %v, %+v", name, nobody, s, c.nobody, c.want)
		}
		if s.Judge("other") {
			t.Errorf("%s: judged twice", name)
		}
	}
}

func TestThreeInARowBreakPromises(t *testing.T) {
	var s standing.Standing
	refuse := func() {
		s.Epoch++
		s.Take(&control.Outcome{Epoch: s.Epoch, Status: control.Refused})
		s.Judge("hash")
	}
	refuse()
	refuse()
	s.Take(&control.Outcome{Epoch: s.Epoch, Status: control.Done}) // it begins anew
	refuse()
	refuse()
	if r := s.Broken("store"); r != nil {
		t.Fatalf("after two: %+v", r)
	}
	refuse()
	if r := s.Broken("store"); r == nil || r.Code != decider.PromisesBroken || r.Scope != "store" || r.Count != 3 {
		t.Fatalf("after three: %+v", r)
	}
	if r := s.Broken("store"); r != nil {
		t.Fatalf("said twice: %+v", r)
	}
}

func TestHashTellsTablesApart(t *testing.T) {
	one, other := control.SplitTable{Table: []control.SplitRow{{To: "a"}}}, control.SplitTable{Table: []control.SplitRow{{To: "b"}}}
	if a, b := standing.HashOf(&one), standing.HashOf(&other); a == b || a != standing.HashOf(&one) || len(a) != 16 {
		t.Errorf("%s, %s", a, b)
	}
}
