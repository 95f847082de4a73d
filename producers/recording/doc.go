// Package recording reads and writes recordings of requests: Parquet, Arrow
// IPC, CSV, JSON Lines, and access logs of any format (package accesslog), each
// plain, gz or zst (DESIGN §3.1, §5).
//
// A [Reader] gives the rows of several files in one order: always the file
// whose next row is the earliest, ties by file, then line. Each file is taken
// to be roughly in order; what is out of order inside a file stays so, and is
// the replay's to put right.
//
//	Open ── Next … Next ── io.EOF      rows, and bad lines to Options.Bad
//	          └─ ErrNothingParses      100 lines of a file and none of use
//	          └─ ErrDamaged            a file that breaks off; rows before it stand
//	Close                              at any time, more than once
//
// In every format the columns are those of DESIGN §3.1 by name; columns that
// are not among them are left out and noted. In text a time is RFC 3339 or Unix
// seconds, milliseconds, microseconds or nanoseconds, told by magnitude; 5, "5"
// and 5.0 are one number; op is read, write or an HTTP method, in capitals or
// small letters (GET reads and POST writes, as in an access log); "-", "null", nothing and null are missing, and never
// 0. The columns time, op and bytes may not be missing.
//
// CSV has a header row, in which capitals and blanks around a name don't count.
// Fields are separated by commas, or by tabs or semicolons where the header row
// has no comma; quotes are those of RFC 4180 with each of the three.
//
// A recording is a regular file: it is read more than once (its digest, its rows,
// its rows again after a restart), so that pipes, standard input and folders are
// refused.
//
// A line that cannot be used is reported to Options.Bad with file, line, field,
// what is there and what was expected, and reading goes on; so is a row that no
// batch may hold (event.Request.Check), and a line of more than 1 MB, which is
// not kept in memory. Blank lines hold nothing and are counted in [Stats].
//
// Reading needs memory for the decompressor, one line, a bounded table of
// strings and, for columnar files, two batches. One goroutine a columnar file
// decodes a batch ahead; it ends with the file or with Close. A Reader is not
// safe for concurrent use. What it returns depends on the files alone.
//
// A [Writer] writes to a temporary file that takes the place of the named one
// when it is closed without an error. Equal rows give equal bytes.
package recording
