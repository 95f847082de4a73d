// Package shipping carries the changes of a catalog to the stores of its coder, so that
// the loss of the coder's machine loses at most the last second of them, and makes a
// catalog of them again (DESIGN §4.4).
//
// # What lies in a store
//
//	<coder>/owner                               whose the blobs are: instance and term
//	<coder>/log/<term>-<first>-<last>.log       changes first … last
//	<coder>/log/<term>-<from>.snap-<part>       rows of a snapshot
//	<coder>/log/<term>-<from>.snap              says that the snapshot is whole
//
// Every blob names its coder, instance and term and ends with a SHA-256. Numbers are in
// hex, so that names order as numbers do.
//
// A blob is shipped when Need stores have it; the others get it if they can. So with Need =
// n−k+1 of n stores every blob is in one of any k. Batches are shipped in order, each
// after the one before is.
//
// A snapshot is read in pieces while changes go on. It is whole when its pieces and all
// changes made meanwhile are shipped; applying those changes to it gives one state. Then
// older changes and snapshots are deleted. One is taken when the changes since the last
// have more bytes than it has, so that a rebuild reads at most twice what there is.
//
// # Ownership
//
// Claim writes the marker before a coder serves. The marker with the highest term owns.
// Rebuild takes over: it writes a marker of the next term to so many stores that no Need
// of them are left, and only then reads the log. A shipper looks at the marker of each
// store after it has put a batch there, and doesn't count what lies beside another's: so a
// change is either seen by who takes over, or never reported as shipped, and the
// coder that was replaced stops with ErrReplaced. A store that has lost its marker is taken
// for a new one, or left alone, as Options.Bare says. What a rebuilt catalog ships counts
// once its first snapshot is whole; until then the log of the term before stands.
//
// States of a Shipper: new, then Claim, then Run, once, until its ctx ends. Failures: Run
// goes on through failures of stores, which Stats counts by store and reason, and ends with
// ErrReplaced and failures of the catalog itself.
package shipping
