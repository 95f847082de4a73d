// Package settings holds what the configurations of policies share: defaults for zeros,
// the faults of a configuration, strict reading of its JSON, and what of it the loop of a
// decider asks a policy for.
//
// States: none; a Frame never changes. Failures: bytes that are not the JSON of a
// configuration, or faults in it, give an error that wraps the policy's own.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"penstock/schemas/control"
)

// OrElse sets a number that is 0 to its default.
func OrElse[T int | int64 | float64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Faults collects what is wrong with a configuration.
type Faults struct{ list []error }

// Need notes a fault unless ok: the field, what it holds and what it should.
func (f *Faults) Need(ok bool, field string, got any, expected string) {
	if !ok {
		f.list = append(f.list, fmt.Errorf("%s: got %.60q, expected %s", field, fmt.Sprint(got), expected))
	}
}

// Err is all faults in one error that wraps sentinel, nil if there are none.
func (f *Faults) Err(sentinel error) error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", sentinel, errors.Join(f.list...))
}

// Decode reads a configuration from its JSON; unknown fields are faults. The error wraps
// sentinel.
func Decode[C any](config []byte, sentinel error) (c C, err error) {
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%w: %w", sentinel, err)
	}
	return c, nil
}

// Frame is what the loop asks every policy for and that never changes. Policies embed it.
type Frame struct {
	kind  control.Kind
	group string
	width time.Duration
	ttl   time.Duration
	body  []byte
}

// NewFrame makes the frame of a kind that reads one group of rollups, over windows of a
// width, and whose commands are in force for ttl. Config is the configuration with its
// defaults filled in; the error wraps sentinel.
func NewFrame(kind control.Kind, group string, width, ttl time.Duration, config any, sentinel error) (Frame, error) {
	body, err := json.Marshal(config)
	if err != nil {
		return Frame{}, fmt.Errorf("%w: %w", sentinel, err)
	}
	return Frame{kind: kind, group: group, width: width, ttl: ttl, body: body}, nil
}

// Kind is what the policy steers.
func (f *Frame) Kind() control.Kind { return f.kind }

// Groups returns the one group that the policy reads.
func (f *Frame) Groups() []string { return []string{f.group} }

// Width returns the width of the windows.
func (f *Frame) Width() time.Duration { return f.width }

// TTL is how long a command is in force: what the loop should set.
func (f *Frame) TTL() time.Duration { return f.ttl }

// Config returns the canonical JSON of the configuration, defaults filled in.
func (f *Frame) Config() []byte { return bytes.Clone(f.body) }
