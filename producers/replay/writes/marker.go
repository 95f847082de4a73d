package writes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"penstock/producers/replay/statefile"
)

// never is the marker before the first window.
const never = math.MinInt64

// marker names the last window whose writes are all in the stores.
type marker struct {
	Version int   `json:"version"`
	Window  int64 `json:"window_end"` // µs
}

func markerPath(dir string) string { return filepath.Join(dir, "written.json") }

func readMarker(dir string) (int64, error) {
	data, err := os.ReadFile(markerPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return never, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMarker, err)
	}
	end, err := decodeMarker(data)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", markerPath(dir), err)
	}
	return end, nil
}

func decodeMarker(data []byte) (int64, error) {
	var m marker
	if err := json.Unmarshal(data, &m); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMarker, err)
	}
	if m.Version != 1 {
		return 0, fmt.Errorf("%w: version %d, expected 1", ErrMarker, m.Version)
	}
	return m.Window, nil
}

func writeMarker(dir string, end int64) error {
	return statefile.Write(markerPath(dir), marker{Version: 1, Window: end})
}
