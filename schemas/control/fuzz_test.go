package control_test

import (
	"bytes"
	"errors"
	"testing"

	"penstock/schemas/control"
	"penstock/schemas/corpus"
)

// fuzz checks that a decoder returns a message or an error, and that a message
// comes back from its canonical bytes.
func fuzz[T any](f *testing.F, kind string, decode func([]byte) (*T, error)) {
	for _, c := range corpus.Of(kind) {
		f.Add(c.Data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(body)
		if err != nil {
			if !errors.Is(err, control.ErrUndecodable) || got != nil {
				t.Fatalf("%v beside %v", got, err)
			}
			return
		}
		canonical, err := control.Encode(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(canonical)
		if err != nil {
			t.Fatalf("%s: %v", canonical, err)
		}
		if b, err := control.Encode(again); err != nil || !bytes.Equal(b, canonical) {
			t.Fatalf("got %s, %v\nexpected %s", b, err, canonical)
		}
	})
}

func FuzzDecodeDecision(f *testing.F) { fuzz(f, "decision", control.DecodeDecision) }
func FuzzDecodeCommand(f *testing.F)  { fuzz(f, "command", control.DecodeCommand) }
func FuzzDecodeOutcome(f *testing.F)  { fuzz(f, "outcome", control.DecodeOutcome) }
func FuzzDecodeLocation(f *testing.F) { fuzz(f, "location", control.DecodeLocation) }
func FuzzDecodeSplit(f *testing.F)    { fuzz(f, "split", control.DecodeSplitAnswer) }

func FuzzDecodeSwitch(f *testing.F) {
	for i, key := range []string{"mode.placement", "freeze.all", "rollback.coding", "evacuate.us-east"} {
		fuzzed := corpus.Of("operator")
		f.Add(key, fuzzed[i%len(fuzzed)].Data)
	}
	for _, c := range corpus.Of("operator") {
		f.Add(c.Name, c.Data)
	}
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		got, err := control.DecodeSwitch(key, body)
		if err != nil {
			if !errors.Is(err, control.ErrUndecodable) || got != nil {
				t.Fatalf("%v beside %v", got, err)
			}
			return
		}
		control.SwitchesOf(control.Placement, []control.Entry{{Key: key, Value: body, Revision: 1}})
		canonical, err := control.Encode(got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := control.DecodeSwitch(key, canonical); err != nil {
			t.Fatalf("%s: %v", canonical, err)
		}
	})
}
