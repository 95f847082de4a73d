package topology

import (
	"fmt"
	"path/filepath"
	"strings"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/pipeline/config"
)

// ReplayStores makes a dir store a site under the state folder: a replay never
// touches the configured ones. Nothing is synced: a replay's data can be made
// again from the recording.
func ReplayStores(cfg *config.Config, state string) (map[string]objectstore.Store, error) {
	out := map[string]objectstore.Store{}
	for i, s := range cfg.Sites {
		// The folder is named by place in the configuration too: any name of a
		// site is a file name then.
		at := filepath.Join(state, "stores", fmt.Sprintf("%02d-%s", i, fileName(s.Name)))
		st, err := dir.Open(at, dir.Options{NoSync: true})
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", s.Name, err)
		}
		out[s.Name] = st
	}
	return out, nil
}

// ConfiguredStores opens the stores that the configuration names.
func ConfiguredStores(cfg *config.Config) (map[string]objectstore.Store, error) {
	out := map[string]objectstore.Store{}
	for _, s := range cfg.Sites {
		at, ok := strings.CutPrefix(s.Store, "dir:")
		if !ok {
			return nil, fmt.Errorf("site %s has no store: give it one such as dir:data/%s, or leave the role executor out", s.Name, s.Name)
		}
		st, err := dir.Open(at, dir.Options{})
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", s.Name, err)
		}
		out[s.Name] = st
	}
	return out, nil
}

func fileName(site string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, site)
}
