package coding

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rs/zerolog"

	"penstock/consumers/decider/coding/threshold"
	"penstock/pipeline/demo/screen"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
)

// Demo is the demonstration.
type Demo struct {
	// Dir holds configurations, logs, and the report, which stay there. What an earlier
	// demonstration left in it is removed.
	Dir string
	// Fast takes under a minute: one light and one heavy load, and stores that stay as
	// they are.
	Fast bool
	// Seed draws requests, contents, and how long stores take.
	Seed uint64
	// Scale multiplies all delays of the paper and divides all rates; 0: 2.
	Scale float64
	// Writes is the share of requests that overwrite an object; 0: 0.05.
	Writes float64
	// Attach are the arguments before those of each process, which let it end with
	// this one.
	Attach []string
	Screen *screen.Screen
	Logger zerolog.Logger
}

// What is shown, beside the options.
const (
	connections = 16
	kMax        = 6
	rMax        = 2
	paperBytes  = 3_000_000
	objectBytes = paperBytes / 10
	objects     = 40
	// waiting is how many requests wait at a coder before it says SlowDown.
	waiting = 100
	// slower is what a request takes more when stores are slower, in units of scale.
	slower = 30.0
	// price is what a million reads of stores cost, US dollars.
	price = 0.4
)

// marker is the file by which a folder is known as a demonstration's.
const marker = "coding-demo.txt"

// head is its first line.
const head = "# Written by penstock demo coding.\n"

// complete fills in what was left out.
func (d *Demo) complete() error {
	d.Scale, d.Writes = cmp.Or(d.Scale, 2), cmp.Or(d.Writes, 0.05)
	d.Logger = d.Logger.Level(zerolog.WarnLevel)
	if d.Scale < 0.5 || d.Scale > 20 || d.Writes < 0 || d.Writes > 0.5 {
		return fmt.Errorf("scale %g, writes %g: expected 0.5 to 20, and up to half: %w", d.Scale, d.Writes, ErrOptions)
	}
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.Dir = dir
	if err := stage.Clear(d.Dir, marker, head); err != nil {
		if errors.Is(err, stage.ErrFolder) {
			err = fmt.Errorf("%w: %w", err, ErrOptions)
		}
		return err
	}
	return nil
}

// truth is the delay of stores, at first or once they are slower.
func (d *Demo) truth(late bool) (read, write threshold.Model) {
	of := func(m threshold.Model) threshold.Model {
		perMB := d.Scale * paperBytes / objectBytes
		out := threshold.Model{Delta: d.Scale * m.Delta, DeltaPerMB: perMB * m.DeltaPerMB, Psi: d.Scale * m.Psi, PsiPerMB: perMB * m.PsiPerMB}
		if late {
			out.Delta += d.Scale * slower
		}
		return out
	}
	return of(threshold.DefaultRead), of(threshold.DefaultWrite)
}

// delays is the same as stores are told it.
func (d *Demo) delays(late bool) control.CodingModel {
	of := func(m threshold.Model) control.CodingDelay {
		return control.CodingDelay{Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}
	}
	read, write := d.truth(late)
	return control.CodingModel{Read: of(read), Write: of(write)}
}

// sizeMB is the size of an object.
const sizeMB = objectBytes / 1e6

// capacity is the reads a second of a code by the model, at first.
func (d *Demo) capacity(n, k int) float64 {
	read, _ := d.truth(false)
	return read.Capacity(sizeMB, n, k, connections)
}

// policy is one that is shown.
type policy struct {
	name string // of its coder, too
	text string
	code string // of a static one, as the configuration has it
}

// policies: the first one is decided, and promises something.
var policies = []policy{
	{"tofec", "tofec", ""},
	{"basic", "(1,1)", "{n: 1, k: 1}"},
	{"wide", "(12,6)", "{n: 12, k: 6}"},
}
