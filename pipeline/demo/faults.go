package demo

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// what is a kind of fault that clients see.
type what string

const (
	failed    what = "requests failed"
	overtaken what = "reads did not show what had been acknowledged"
	misnamed  what = "answers named another site than the one that served"
	detour    what = "answers took more than one hop, or did not say how many"
)

var whats = []what{failed, overtaken, misnamed, detour}

// faults are those that clients saw. They are safe for concurrent use.
type faults struct {
	mu       sync.Mutex
	count    map[what]int
	examples map[what][]string
}

// maxExamples is how many faults of a kind are told.
const maxExamples = 5

func (f *faults) add(w what, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.count, f.examples = map[what]int{}, map[what][]string{}
	}
	if f.count[w]++; f.count[w] <= maxExamples {
		f.examples[w] = append(f.examples[w], fmt.Sprintf(format, args...))
	}
}

// of is how many there were of a kind.
func (f *faults) of(w what) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[w]
}

// told are some of a kind, in words.
func (f *faults) told(w what) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.examples[w]
}

// maxAge is how long an answer may be kept, as Cache-Control says; 0 if it doesn't.
func maxAge(control string) time.Duration {
	for d := range strings.SplitSeq(control, ",") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(d), "max-age="); ok {
			if s, err := strconv.Atoi(v); err == nil && s > 0 {
				return time.Duration(s) * time.Second
			}
		}
	}
	return 0
}
