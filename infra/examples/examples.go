// Package examples holds the configurations and parameters that the project
// comes with, for the parts of the binary that need one without being given a
// file: the experiments. It has no state and no failures.
package examples

import _ "embed" // The files lie in the binary.

// PaperDay is the workload of the placement paper's day (PAPERS §1.4), YAML of
// producers/workload.
//
//go:embed paper-day.yaml
var PaperDay []byte

// PlacementExperiment is what `penstock experiment placement` runs: cases,
// friend models and which of them is the standard one, sensitivity, clouds.
//
//go:embed experiment/placement.yaml
var PlacementExperiment []byte

// WorldDay is a day of users around the world, YAML of producers/workload.
//
//go:embed experiment/world-day.yaml
var WorldDay []byte

// SplitExperiment is what `penstock experiment split` runs: applications, faults,
// what policies are told, targets.
//
//go:embed experiment/split.yaml
var SplitExperiment []byte

// CodingExperiment is what `penstock experiment coding` runs: stores and their delays,
// loads, steps, targets.
//
//go:embed experiment/coding.yaml
var CodingExperiment []byte

// ServersExperiment is what `penstock experiment servers` runs: the system, pages,
// scenarios and which of them are held out, targets.
//
//go:embed experiment/servers.yaml
var ServersExperiment []byte
