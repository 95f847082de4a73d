// Package postgres is a store over PostgreSQL: one site's database, in which
// owners have rows in some tables. Whoever writes to these tables in SQL is kept
// off an owner that is being moved, and sent after one that has moved, without
// knowing of Penstock.
//
// # What is an object
//
// An owner's data is its rows in the configured tables, each of which says in a
// column whose a row is. All its rows of one table are one object, called
// 00.schema.table; the numbers follow the foreign keys, so that what is copied in
// the order of names finds what it refers to. A table in which the owner has no
// row is no object. Sites with the same tables have the same objects; a table that
// one site lacks is refused there.
//
// Objects of any other name are kept as they are in tables of Penstock's own, so
// that owners can be moved here from other kinds of stores.
//
// # What the tables must be like
//
// Tables need a primary key, and no foreign keys that go round. Values of primary
// and other unique keys are unique over all sites: a UUID, a key with the owner in
// it, or sequences that yield other values at each site (at site i of n, INCREMENT
// BY n RESTART i; or MINVALUE and MAXVALUE of its own). Sequences that are made as
// any other hand out the same keys at all sites, and then an owner can't move to
// where another has such a row: Open warns of these tables.
//
// Rows refer to rows of the same owner. All tables that refer to a configured one
// are configured, too: else their rows would be deleted with the old copy (ON
// DELETE CASCADE), or keep it from being deleted. Open refuses such tables, and a
// deletion does if one comes later. Tables that configured ones refer to (of
// kinds, of currencies) needn't be configured; then the rows that are referred to
// must be at every site, or what refers to them doesn't fit there.
//
// # How rows are sent
//
// The first line is "penstock rows 1" and the names of the columns, in their
// byte order, after tabs; generated columns are left out. The rest is the text
// format of COPY, rows in the order of the primary key: numbers by value,
// anything else by the bytes of its text. Settings that change how a value is
// written are fixed (session, in postgres.go). So equal rows are equal bytes,
// whatever the server's order of columns, time zone or collation. Put writes the
// difference only, in one transaction, and moves sequences past the values that
// have arrived.
//
// # The barrier
//
//	client: a statement writes ─▶ trigger: refused if the mark says so
//	                             ─▶ shares the owner's lock until its transaction ends
//	                             ─▶ the mark again, and the change is counted
//	mover:  Hold = the lock, alone, in a session ─▶ versions compared ─▶ fence ─▶ Release
//
// Open installs triggers on the tables, for all clients. A write to a copy that
// is not to be written to fails with SQLSTATE PS001, a message that names the new
// site, and the copy's mark as JSON in its detail (Moved reads it in Go). That goes
// on for ever when the copy has been deleted: the mark of what has moved away
// stays, one row an owner, until a copy comes back or is made here through the
// Store; if a move back is given up, it holds again. A copy that was deleted where
// it was live, or never arrived, leaves no mark. The lock is an advisory one. A
// barrier waits for transactions under way, half a second at a time, then lets the
// others on before it tries again. It is a session's: it goes when the connection
// does, and the fence of its holder with it.
//
// Versions are counts of changes, kept in the transactions that make them, in
// slots, so that writers don't wait for each other. They are compared when all
// writers have ended. An update that changes a row's owner is a write to both. In
// a transaction that is repeatable read or serializable a write after a move
// fails first with a serialization failure (40001), as all that such a
// transaction doesn't see; the first such write to an owner without a mark meets
// another's with the same. One that writes to more than 64 owners and tables
// shares all locks, so that a barrier, for whomever, waits for it.
//
// What the triggers don't see: a statement that finds no row is no write, and one
// that violates a constraint fails for that first. A partition that is made later
// and written to directly is fenced from the next Open on. Rows that logical
// replication applies fire no triggers of statements. TRUNCATE of a table or
// partition is refused (PS002).
//
// # What it needs
//
// PostgreSQL 13 or later, an encoding of UTF-8, and a direct connection: a pooler
// that hands sessions around would hand barriers around. The role needs SELECT,
// INSERT, UPDATE and DELETE on the tables, and must own them once, when triggers
// are installed (or be a superuser); CREATE on the database for the schema, or
// own it; TEMPORARY; USAGE, SELECT and UPDATE on the tables' sequences, of which it
// should be the owner, for only then is nobody drawing from them while they are
// moved; and BYPASSRLS where rows are secured. Clients need nothing. An index by
// owner on each table keeps moves from reading all of it. An owner column of text
// must tell all texts apart.
//
// The tables' own triggers fire for what a mover writes. Those that change it make
// the copy differ from its source, so that the move fails: see SkipTriggers.
//
// # Failures
//
// Sentinels are in errors.go and objectstore. Rows that the tables here refuse, for
// a key that is another owner's, a row that they refer to and that isn't here,
// another set of columns, a type, a CHECK or a trigger, are objectstore.ErrUnfit;
// the error names the constraint and the key. A transaction that fails leaves
// nothing. The deletion of a large owner takes several, and can be repeated: the
// mark goes last. Connections that are lost are made again; what was asked over
// them fails with what the server or the line said. Memory doesn't grow with what
// is moved.
package postgres
