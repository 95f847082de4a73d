package replay

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestACursorComesBackAsItWas(t *testing.T) {
	dir, end := t.TempDir(), int64(1473843600000000)
	c := &Cursor{
		Version: 1, Fingerprint: Fingerprint{"a": "1"}, Run: "r", Window: &end, Acked: []uint64{3, 0, 9},
		Rows: 17, Rejected: 2, Horizon: -5,
	}
	if err := c.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCursor(dir)
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v; expected %+v", got, err, c)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is in the folder, %v; expected the cursor alone", left, err)
	}
}

func TestARunIsNamedByItsWholeFingerprint(t *testing.T) {
	a := Fingerprint{"recording": "x", "disorder": "1m"}
	if a.RunID() != (Fingerprint{"disorder": "1m", "recording": "x"}).RunID() {
		t.Error("the order of a map is in the name")
	}
	for _, b := range []Fingerprint{{"recording": "x"}, {"recording": "x", "disorder": "2m"}, {"recording": "x\"=\"", "disorder": "1m"}} {
		if a.RunID() == b.RunID() {
			t.Errorf("%v and %v have one name", a, b)
		}
	}
	got := strings.Join(a.differences(Fingerprint{"recording": "y", "until": "noon"}), "; ")
	if got != "disorder is 1m and was not set; recording was y and is x; until was noon and is not set" {
		t.Errorf("got %q", got)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add([]byte(`{"version":1,"fingerprint":{"a":"b"},"run":"r","window_end":12,"acked":[1,2]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeCursor(data)
		if err == nil && (c.Version != 1 || c.Run == "") || err != nil && !errors.Is(err, ErrCursor) {
			t.Fatalf("got %+v, %v", c, err)
		}
	})
}
