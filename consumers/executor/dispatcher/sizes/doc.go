// Package sizes tells how large a request is before it has been served: the bytes of its
// body and those that the answer to its path had so far (PAPERS §2.2 goes by sizes that a
// switch does not know in advance).
//
// An answer's size is the mean of the last few for the same class and path, in a table of
// the paths that were asked for last. A path that isn't there has the mean of its class, and
// a class of which nothing is known the mean of all, or a default.
//
// # States and failures
//
// Sizes are safe for concurrent use and bounded: a path beyond the table's length takes the
// place of the one that was longest not asked for, classes beyond [MaxClasses] share the
// mean of all. Both are counted, see [Sizes.State]. The order of the calls is all that the
// answers depend on. Nothing is kept across a restart.
package sizes
