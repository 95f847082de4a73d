package topology

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretFile: what names a secret is asked for it, so that a file without one is
// refused wherever it is named; no name is no secret.
func TestSecretFile(t *testing.T) {
	t.Parallel()
	d := t.TempDir()
	for name, c := range map[string]struct {
		text, want string
		err        error
	}{
		"a token":  {" s3cret\n", "s3cret", nil},
		"nothing":  {"", "", ErrOptions},
		"a blank":  {" \n\t\n", "", ErrOptions},
		"no file":  {"-", "", fs.ErrNotExist},
		"no field": {},
	} {
		file := ""
		if name != "no field" {
			file = filepath.Join(d, name)
		}
		if file != "" && c.text != "-" {
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := SecretFile("telemetry.token_file", file)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %q, %v, expected %q, %v", name, got, err, c.want, c.err)
		}
		if err != nil && (!strings.Contains(err.Error(), "telemetry.token_file") || !strings.Contains(err.Error(), file)) {
			t.Errorf("%s: %v: expected the field and the file", name, err)
		}
	}
}
