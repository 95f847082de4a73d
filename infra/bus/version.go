package bus

import (
	"fmt"
	"strconv"
	"strings"
)

// minVersion is the oldest server that does what Penstock relies on: atomic
// batches whose expectations are checked as a whole.
var minVersion = [3]int{2, 15, 3}

// checkVersion refuses servers older than minVersion. A pre-release of it
// ("2.15.3-RC.1") is older than it; what cannot be read is refused too.
func checkVersion(v string) error {
	have, pre, ok := parseVersion(v)
	if !ok {
		return fmt.Errorf("version %q: expected one like 2.15.3: %w", v, ErrVersion)
	}
	for i, n := range have {
		if n != minVersion[i] {
			if n > minVersion[i] {
				return nil
			}
			return tooOld(v)
		}
	}
	if pre {
		return tooOld(v)
	}
	return nil
}

func tooOld(v string) error {
	return fmt.Errorf("version %s, need %d.%d.%d or later: %w", v, minVersion[0], minVersion[1], minVersion[2], ErrVersion)
}

func parseVersion(v string) (n [3]int, pre, ok bool) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
	v, _, pre = strings.Cut(v, "-")
	parts := strings.Split(v, ".")
	if len(parts) != 3 {
		return n, pre, false
	}
	for i, p := range parts {
		u, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return n, pre, false
		}
		n[i] = int(u)
	}
	return n, pre, true
}
