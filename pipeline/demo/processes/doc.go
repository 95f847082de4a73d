// Package processes runs parts of a demonstration as real processes: this very
// program, started again with other arguments.
//
// A [Group] holds them in the order in which they were started and stops them in
// the opposite one. Each writes what it says into a file of its own. A process is
// starting until its Ready says that it answers, then runs until Stop tells it to
// end (SIGTERM, and SIGKILL when it does not), or until it ends by itself, which
// is a failure that ends [Group.Failed].
//
// No process outlives this one, however it ends: each has the reading end of a
// pipe as its standard input and ends when that ends ([Attach] in the started
// program sees to it).
//
// [Addresses] finds addresses to listen at, below those that the system hands out to
// connections by itself.
//
// Failures: the error of a process that ended or never became ready holds the
// last lines that it wrote.
package processes
