// Package corpus holds messages in all their forms, for tests and for those who
// write producers or executors of their own: good ones, which every reader
// takes; bad ones, which every reader refuses; old ones, written before a field
// or column was added, and newer ones, with fields and columns that this version
// does not know. The latter two are never written again: they are what the rule
// of schemas/README.md promises to read.
//
// A file's name is its kind, "-", and what is special about it: decision-*,
// command-*, outcome-*, location-*, split-*, operator-KEY, commit-*, request-* and
// gauge-* (a row as JSON), header-* and mark-* (headers as JSON; marks are of a bus of
// eight partitions), batch-*, gauges-* and pane-* (Arrow streams, .s2 if
// compressed), lines-* (batches as JSON Lines).
package corpus

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed good bad old newer
var files embed.FS

// The folders.
const (
	Good  = "good"
	Bad   = "bad"
	Old   = "old"
	Newer = "newer"
)

// Folders lists the folders.
var Folders = []string{Good, Bad, Old, Newer}

// File is one message.
type File struct {
	Folder string
	Kind   string // decision, command, …, batch, lines, gauges, pane
	Name   string // the rest of the file's name, without endings
	Data   []byte
	S2     bool // the body is compressed
}

// Path is the file's path in this folder, without endings.
func (f File) Path() string { return f.Folder + "/" + f.Kind + "-" + f.Name }

// Files returns the messages of a folder, by name; an unknown folder panics.
func Files(folder string) []File {
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic(fmt.Sprintf("corpus: %v", err))
	}
	var out []File
	for _, e := range entries {
		data, err := files.ReadFile(folder + "/" + e.Name())
		if err != nil {
			panic(fmt.Sprintf("corpus: %v", err)) // Embedded by the compiler: it cannot fail.
		}
		name, s2 := strings.CutSuffix(e.Name(), ".s2")
		for _, ending := range []string{".json", ".jsonl", ".arrow"} {
			name = strings.TrimSuffix(name, ending)
		}
		kind, rest, _ := strings.Cut(name, "-")
		out = append(out, File{Folder: folder, Kind: kind, Name: rest, Data: data, S2: s2})
	}
	return out
}

// Of returns the messages of a kind in all folders: the seeds of a fuzzer.
func Of(kind string) []File {
	var out []File
	for _, folder := range Folders {
		for _, f := range Files(folder) {
			if f.Kind == kind {
				out = append(out, f)
			}
		}
	}
	return out
}
