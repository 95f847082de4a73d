package testserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor times in /proc, which is 10 ms everywhere
// (sysconf(_SC_CLK_TCK)).
const clockTick = 10 * time.Millisecond

// ProcessorTime is what a process and its children have used of the processors
// so far, user and system.
func ProcessorTime(pid int) (time.Duration, error) {
	own, err := ticks(pid)
	if err != nil {
		return 0, err
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended has no children
		}
		for child := range strings.FieldsSeq(string(b)) {
			number, err := strconv.Atoi(child)
			if err != nil {
				return 0, fmt.Errorf("children of process %d: %w", pid, err)
			}
			more, err := ProcessorTime(number)
			if errors.Is(err, os.ErrNotExist) {
				continue // it ended just now
			}
			if err != nil {
				return 0, err
			}
			own += more
		}
	}
	return own, nil
}

// ticks reads the times of one process, its threads included.
func ticks(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("times of process: %w", err)
	}
	// The name in parentheses may hold anything; utime and stime are fields 14 and
	// 15, of which 3 is the first behind it.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("times of process %d: %q", pid, b)
	}
	var sum time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("times of process %d: %w", pid, err)
		}
		sum += time.Duration(n) * clockTick
	}
	return sum, nil
}

func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(state, "Z")
}
