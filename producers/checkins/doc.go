// Package checkins turns check-ins of a location-based social network into
// requests (DESIGN §5, import checkins): the formats are those of Gowalla's
// public recording.
//
// A check-in is a write of the user's own data at the place of the check-in.
// It causes reads of that data by the user's friends, each of whom reads from
// where they checked in last. Which friend, and when, is drawn from a generator
// seeded by the seed and the check-in itself, so that a check-in's reads
// change neither with the order of the file nor with what else is in it,
// except for the friends' places.
//
// Nothing is read from a clock and no goroutine is started. The events are held
// in memory (about 40 bytes each), because they come newest first and because
// who has a place follows from all of them; the requests are not: they are made
// and put in order as time passes.
//
// Failures: a line that cannot be used is reported and passed over. A file of
// which nothing parses, or that breaks off, is an error; then nothing was
// emitted.
package checkins
