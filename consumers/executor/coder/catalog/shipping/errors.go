package shipping

import "errors"

var (
	// ErrBare is the failure of a store that has no marker and is not taken for a new one
	// (Options.Bare). What was put there doesn't count.
	ErrBare = errors.New("store has no owner marker")
	// ErrBehind is returned by Claim when the stores have later changes of this very
	// instance: the catalog's file was put back to an older one. Nothing was written.
	// Rebuild takes what the stores have.
	ErrBehind = errors.New("stores have later changes than the catalog")
	// ErrGap is returned by Rebuild when changes are missing between others. No file
	// was made, but the stores' marker is the new owner's.
	ErrGap = errors.New("changes are missing in the log")
	// ErrNoLog is returned by Rebuild when no store has a sign of the coder.
	ErrNoLog = errors.New("stores have nothing of this coder")
	// ErrOwned is returned by Claim when the stores belong to another state of the
	// coder, and by Rebuild when another one took them meanwhile.
	ErrOwned = errors.New("stores belong to another instance of the coder")
	// ErrReplaced is returned by Run and Sync when another instance has taken the
	// stores. Nothing more is shipped, and the coder must serve no longer.
	ErrReplaced = errors.New("another instance of the coder has taken over")
	// ErrStopped is returned by Sync when Run has ended.
	ErrStopped = errors.New("changes are no longer shipped")
	// ErrStores is returned when too few stores answer. Stores that do may have a new
	// marker.
	ErrStores = errors.New("too few stores answer")
	// ErrTorn is returned for a blob that isn't what was written, and is named. From
	// Rebuild it means that no store has it whole; no file was made.
	ErrTorn = errors.New("blob of the log is damaged")
	// ErrFormat is returned for a blob of a format that this version doesn't know.
	ErrFormat = errors.New("unknown format of a blob of the log")
	// ErrOptions is returned by New and Rebuild for options that make no sense.
	ErrOptions = errors.New("bad options of shipping")
)
