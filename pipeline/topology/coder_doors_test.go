package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/testserver"
	"penstock/pipeline/config"
)

// TestAFileThatIsMissingShowsBeforeStoresAreClaimed: a coder that can't start because of
// one of its files has not touched a store, also when it was told to adopt them, which
// would have ended the instance that serves.
func TestAFileThatIsMissingShowsBeforeStoresAreClaimed(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"keys_file", "token_file"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			d := t.TempDir()
			files := map[string]string{"keys_file": filepath.Join(d, "keys"), "token_file": filepath.Join(d, "token")}
			for name, path := range files {
				if err := os.WriteFile(path, []byte("client a-secret-of-some-length\n"), 0o600); err != nil {
					t.Fatal(name, err)
				}
			}
			if err := os.Remove(files[field]); err != nil {
				t.Fatal(err)
			}
			store, text := filepath.Join(d, "store"), filepath.Join(d, "penstock.yaml")
			if err := os.WriteFile(text, fmt.Appendf(nil, `
sites: [{name: east, lat: 37.4, lon: -79.8, capacity: 100MB/h}]
coders: [{name: objects, site: east, listen: "127.0.0.1:0", admin: "127.0.0.1:0", keys_file: %q, token_file: %q, stores: [{name: a, url: "dir:%s"}]}]
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, files["keys_file"], files["token_file"], store), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(text)
			if err != nil {
				t.Fatal(err)
			}
			c := &Coder{Adopt: true, Alone: Alone{
				Config: cfg, Name: "one", State: filepath.Join(d, "state"), NATS: "nats://" + testserver.FreeAddress(t), Logger: zerolog.Nop(),
			}}
			err = c.Run(t.Context())
			if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), field) {
				t.Errorf("%v, expected one that names %s", err, field)
			}
			if list, err := os.ReadDir(store); len(list) > 0 {
				t.Errorf("the store has %v, %v", list, err)
			}
			if _, err := os.Stat(filepath.Join(d, "state", "catalog")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a catalog was made: %v", err)
			}
		})
	}
}
