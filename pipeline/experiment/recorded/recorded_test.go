package recorded

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// put writes lines below a head, packed.
func put(t *testing.T, name string, lines ...string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte("head\n" + strings.Join(lines, "\r\n")))
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAzure reads both classes, the tokens of a request together.
func TestAzure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conv, code := filepath.Join(dir, "AzureLLMInferenceTrace_conv.csv.gz"), filepath.Join(dir, "AzureLLMInferenceTrace_code.csv.gz")
	put(t, conv, "1970-01-01 00:00:02.5000000,374,44")
	if _, err := Azure(dir); !errors.Is(err, ErrRecording) {
		t.Errorf("a file is missing: %v", err)
	}
	put(t, code, "1970-01-01 00:00:01,10,5")
	rows, err := Azure(dir)
	if err != nil || len(rows) != 2 || rows[0] != (Row{At: 25e8, Size: 418}) || rows[1] != (Row{At: 1e9, Size: 15, Kind: 1}) {
		t.Errorf("%+v, %v", rows, err)
	}
	for _, line := range []string{"1970-01-01 00:00:01,10", "yesterday,10,5", "1970-01-01 00:00:01,-10,5"} {
		put(t, code, line)
		if _, err := Azure(dir); !errors.Is(err, ErrRecording) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNASA spreads the requests of a second over it, the same each time.
func TestNASA(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.gz")
	put(t, name, "a\t-\t7\tGET\t/cgi-bin/x\t200\t12", "b\t-\t7\tGET\t/x.html\t200\t34")
	for _, step := range []time.Duration{time.Nanosecond, time.Microsecond} {
		rows, err := NASA(name, step)
		if err != nil || len(rows) != 2 || !rows[0].Dynamic || rows[1].Dynamic || rows[1].Size != 34 || rows[0].At == rows[1].At {
			t.Fatalf("%+v, %v", rows, err)
		}
		again, _ := NASA(name, step)
		for i, r := range rows {
			if r.At/1e9 != 7 || r.At%int64(step) != 0 || again[i] != r {
				t.Errorf("%+v and %+v in steps of %v", r, again[i], step)
			}
		}
	}
	for _, line := range []string{"a\t-\t7", "a\t-\tx\tGET\t/\t200\t12", "a\t-\t7\tGET\t/\t200\t-"} {
		put(t, name, line)
		if _, err := NASA(name, 1); !errors.Is(err, ErrRecording) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
