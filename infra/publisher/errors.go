package publisher

import "errors"

var (
	// ErrClosed is returned by Send, Barrier and End after Close, and after
	// End. The row was not taken.
	ErrClosed = errors.New("the publisher is closed")

	// ErrNotReplay is returned by Send of a live publisher and by New for
	// options that do not go together.
	ErrNotReplay = errors.New("not a publisher of that kind")

	// ErrSpoolInUse is returned by New when another process has the spool.
	ErrSpoolInUse = errors.New("the spool is in use by another process: each needs a folder of its own (of penstock: another --name or --state)")

	// ErrGroup is returned by Send when the rows since the last Commit are more
	// than a group may hold. The row was not taken; it can be sent after Commit.
	ErrGroup = errors.New("too many rows without a commit")

	// ErrUncommitted is returned by Barrier and End while rows are not committed.
	// Nothing has happened.
	ErrUncommitted = errors.New("there are rows that are not committed")

	// ErrSpoolSmall is returned by Commit when a group is larger than the spool
	// may become. The rows stay in the group.
	ErrSpoolSmall = errors.New("the spool is too small for a group")

	// ErrSync is returned by Commit when a group is written and it is unknown
	// whether the disk has it. It ends the publisher; the next start reads what is
	// there.
	ErrSync = errors.New("the spool cannot be synced")

	// ErrPositions is returned by New of a live publisher for a spool that holds
	// the position of an input: it would be lost.
	ErrPositions = errors.New("the spool belongs to an input with positions")

	// ErrPartitions is returned by New when the spool holds batches of an input
	// with positions for a bus with other partitions. Nothing is lost: a start on
	// the bus of before sends them.
	ErrPartitions = errors.New("the spool is of a bus with other partitions")

	// errTorn marks the end of what can be read of a spool file.
	errTorn = errors.New("torn record")
)
