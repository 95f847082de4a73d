package doctor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"penstock/consumers/executor/coder/chunks"
	"penstock/pipeline/config"
)

// ownerMark says whether a store has the mark by which a coder knows it as its own: one
// that answers without it is the empty folder of a disk that is not mounted, or a new
// store.
type ownerMark int

const (
	markUnknown ownerMark = iota
	markThere
	markLacking
)

// markKey is the mark of a coder's store.
func markKey(coder string) string { return coder + "/owner" }

// folderMark looks for the mark in a folder, where a key is a file with a tilde.
func folderMark(folder, coder string) ownerMark {
	_, err := os.Stat(filepath.Join(folder, filepath.FromSlash(markKey(coder))+"~"))
	switch {
	case err == nil:
		return markThere
	case errors.Is(err, fs.ErrNotExist):
		return markLacking
	}
	return markUnknown
}

// bucketMark looks for the mark in a bucket that is reached.
func (x *examination) bucketMark(ctx context.Context, what, coder string, s chunks.Store) ownerMark {
	_, err := s.Get(ctx, markKey(coder), 0, 1, io.Discard)
	switch {
	case err == nil:
		return markThere
	case errors.Is(err, chunks.ErrNotFound):
		return markLacking
	}
	x.add("stores", what, Look, "whether it has its owner mark can't be told: "+err.Error(), "may these keys read objects?")
	return markUnknown
}

// unmarked tells of stores without an owner mark while another store of the coder has it.
// Where none has it, the coder has not run yet.
func (x *examination) unmarked(k *config.Coder, marks []ownerMark) {
	if !slices.Contains(marks, markThere) {
		return
	}
	for i, m := range marks {
		if name := k.Stores[i].Name; m == markLacking {
			x.add("stores", "store "+name+" of coder "+k.Name, Look, "has no owner mark though others have: is its disk mounted, its address right?",
				"if what it held is lost: penstock coder store-is-new "+name+"; one that was added to the configuration gets its mark when the coder starts"+elsewhere)
		}
	}
}
