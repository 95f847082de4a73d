package processor

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

// Time is what a process and its children have used of the processors so far, user
// and system. ErrUnknown.
func Time(pid int) (time.Duration, error) {
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
			more, err := Time(number)
			if errors.Is(err, ErrUnknown) {
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

// Own is what a process has used, its children not counted. ErrUnknown.
func Own(pid int) (time.Duration, error) { return ticks(pid) }

// ticks reads the times of one process, its threads included.
func ticks(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
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

// Machine is what all processes together have used of all processors since the
// machine was started: user, nice, system, interrupts, and what a host took.
func Machine() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("times of the machine: %.100q", first)
	}
	var sum time.Duration
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // 4 and 5 are idle, and waiting for disks
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("times of the machine: %w", err)
		}
		sum += time.Duration(n) * clockTick
	}
	return sum, nil
}
