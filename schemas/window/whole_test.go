package window

import (
	"bytes"
	"errors"
	"testing"
)

func TestPartIsTheInverseOfJoin(t *testing.T) {
	for _, panes := range [][][]byte{nil, {[]byte("one")}, {[]byte("one"), {}, []byte("three")}} {
		body, lengths := Join(panes, []byte(`{"version":1}`))
		got, commit, err := Part(lengths, body)
		if err != nil || string(commit) != `{"version":1}` || len(got) != len(panes) {
			t.Fatalf("%d panes: got %d and %q, %v", len(panes), len(got), commit, err)
		}
		for i := range panes {
			if !bytes.Equal(got[i], panes[i]) {
				t.Errorf("pane %d: got %q, expected %q", i, got[i], panes[i])
			}
		}
	}
}

func TestPartRefusesLengthsThatDoNotFit(t *testing.T) {
	for _, lengths := range []string{"4", "1,3", "-1", "x", "1,", "99999999999999999999"} {
		if _, _, err := Part(lengths, []byte("abc")); !errors.Is(err, ErrUndecodable) {
			t.Errorf("%q: got %v, expected ErrUndecodable", lengths, err)
		}
	}
}

func FuzzPart(f *testing.F) {
	f.Add("3,4", []byte("onefour{}"))
	f.Add("", []byte("{}"))
	f.Fuzz(func(t *testing.T, lengths string, body []byte) {
		panes, commit, err := Part(lengths, body)
		if err != nil {
			return
		}
		if got, _ := Join(panes, commit); !bytes.Equal(got, body) {
			t.Errorf("joined again: %q, expected %q", got, body)
		}
	})
}
