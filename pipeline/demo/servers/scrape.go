package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// samples are the metrics of a process by name, each with its labels.
type samples map[string][]sample

type sample struct {
	labels map[string]string
	value  float64
}

// errMetrics is told of what can't be read as metrics.
var errMetrics = errors.New("metrics can't be read")

// parse reads the text format of Prometheus, of a name that begins with a prefix.
func parse(in io.Reader, prefix string) (samples, error) {
	out := samples{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		name, rest, labelled := strings.Cut(line, "{")
		if !labelled {
			name, rest, _ = strings.Cut(line, " ")
		}
		one := sample{labels: map[string]string{}}
		for labelled {
			key, after, ok := strings.Cut(rest, "=")
			quoted, err := strconv.QuotedPrefix(after)
			if !ok || err != nil {
				return nil, fmt.Errorf("%.100q: %w", line, errMetrics)
			}
			if one.labels[key], err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("%.100q: %w", line, errMetrics)
			}
			after = after[len(quoted):]
			if rest, labelled = strings.CutPrefix(after, ","); labelled {
				continue
			}
			if rest, ok = strings.CutPrefix(after, "} "); !ok {
				return nil, fmt.Errorf("%.100q: %w", line, errMetrics)
			}
		}
		value, _, _ := strings.Cut(rest, " ") // A time may follow.
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%.100q: %w", line, errMetrics)
		}
		one.value = v
		out[name] = append(out[name], one)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMetrics, err)
	}
	return out, nil
}

// sum adds up a metric over those whose labels are as wanted, which are pairs
// of a label and its value.
func (s samples) sum(name string, want ...string) (sum float64) {
	for _, x := range s[name] {
		fits := true
		for i := 0; i+1 < len(want); i += 2 {
			fits = fits && x.labels[want[i]] == want[i+1]
		}
		if fits {
			sum += x.value
		}
	}
	return sum
}

// scrape asks a process for its metrics.
func scrape(ctx context.Context, client *http.Client, address string) (samples, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	resp, err := client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %d: %w", address, resp.StatusCode, errMetrics)
	}
	return parse(resp.Body, "penstock_")
}
