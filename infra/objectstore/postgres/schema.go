package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// slots is how many locks a transaction takes that writes to very many owners,
// instead of one for each. A barrier takes one of them.
const slots = 32

// lockClass is the first key of these locks, and of the one that keeps two
// installations apart. "PST0".
const lockClass = 0x50535430

// tablesSQL makes what Penstock keeps in a site's database. {S} is the schema.
const tablesSQL = `
CREATE SCHEMA IF NOT EXISTS {S};
CREATE TABLE IF NOT EXISTS {S}.copies (
	owner bytea PRIMARY KEY,
	mark jsonb,
	made boolean NOT NULL DEFAULT false,
	gone boolean NOT NULL DEFAULT false,
	went jsonb
);
ALTER TABLE {S}.copies ADD COLUMN IF NOT EXISTS gone boolean NOT NULL DEFAULT false, ADD COLUMN IF NOT EXISTS went jsonb;
COMMENT ON TABLE {S}.copies IS 'What the copies of owners are. Without a mark the copy may be written to; made: it is there though it may have no rows. gone: it was moved away and deleted, and its mark says where to, for who writes to it still. went: the mark of a copy that went before one that is incoming, and that holds again if that never arrives.';
CREATE TABLE IF NOT EXISTS {S}.changes (
	owner bytea NOT NULL,
	object text NOT NULL,
	slot bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
	n bigint NOT NULL DEFAULT 1,
	PRIMARY KEY (owner, object, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE {S}.changes IS 'How often the rows of an owner in a table were changed: the sum of n, which transactions that run side by side count in different slots.';
CREATE TABLE IF NOT EXISTS {S}.objects (
	owner bytea NOT NULL,
	name bytea NOT NULL,
	blob bigint NOT NULL,
	size bigint NOT NULL,
	digest text NOT NULL,
	PRIMARY KEY (owner, name)
);
COMMENT ON TABLE {S}.objects IS 'Objects of owners that are no rows: what another kind of store held.';
CREATE SEQUENCE IF NOT EXISTS {S}.blobs;
CREATE TABLE IF NOT EXISTS {S}.chunks (
	blob bigint NOT NULL,
	n int NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (blob, n)
);
CREATE TABLE IF NOT EXISTS {S}.installed (name text PRIMARY KEY, digest text NOT NULL);
CREATE OR REPLACE VIEW {S}.overview AS
	SELECT encode(owner, 'escape') AS owner, coalesce(mark ->> 'state', 'unmarked') AS state,
		(mark ->> 'version')::numeric AS version, mark ->> 'site' AS site, mark ->> 'by' AS by
	FROM {S}.copies WHERE NOT gone AND (made OR mark IS NOT NULL);
`

// functionsSQL is the fence. A transaction that writes to an owner's rows shares
// the owner's lock until it ends, and so it is waited for, and waits, where the
// owner is held. penstock.held is the transaction's note of what it has already
// announced; it goes with the transaction or the savepoint, as the locks do.
const functionsSQL = `
CREATE OR REPLACE FUNCTION {S}.lock_of(owner bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT ('x' || left(encode(sha256(owner || convert_to({NAME}, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$$;

CREATE OR REPLACE FUNCTION {S}.close_session(owner bytea) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	first int := floor(random() * {SLOTS})::int;
BEGIN
	PERFORM pg_advisory_lock({S}.lock_of(owner));
	-- Any slot will do: who writes to very many owners shares them all.
	FOR i IN 0..{SLOTS} - 1 LOOP
		IF pg_try_advisory_lock({CLASS}, (first + i) % {SLOTS}) THEN RETURN; END IF;
	END LOOP;
	PERFORM pg_advisory_lock({CLASS}, first);
END $$;

CREATE OR REPLACE FUNCTION {S}.close_transaction(owner bytea) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	first int := floor(random() * {SLOTS})::int;
BEGIN
	PERFORM pg_advisory_xact_lock({S}.lock_of(owner));
	FOR i IN 0..{SLOTS} - 1 LOOP
		IF pg_try_advisory_xact_lock({CLASS}, (first + i) % {SLOTS}) THEN RETURN; END IF;
	END LOOP;
	PERFORM pg_advisory_xact_lock({CLASS}, first);
END $$;

-- Raises an error unless a transaction may write to a copy with this mark.
CREATE OR REPLACE FUNCTION {S}.must_admit(owner bytea, mark jsonb) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text := encode(owner, 'escape');
BEGIN
	IF encode(owner, 'hex') = current_setting('penstock.owner', true) THEN
		IF mark IS NOT DISTINCT FROM nullif(current_setting('penstock.mark', true), '')::jsonb THEN RETURN; END IF;
	ELSIF mark IS NULL OR mark ->> 'state' = 'live' THEN
		RETURN;
	END IF;
	IF mark ->> 'state' = 'retired' THEN
		RAISE EXCEPTION 'the data of owner % has moved to site %', name, mark ->> 'site'
			USING ERRCODE = '{FENCED}', DETAIL = mark::text, HINT = 'Write to site ' || (mark ->> 'site') || '.';
	END IF;
	RAISE EXCEPTION 'the data of owner % may not be written to here: it is %', name, coalesce(mark ->> 'state', 'unmarked')
		USING ERRCODE = '{FENCED}', DETAIL = coalesce(mark, '{"state":""}')::text, HINT = 'Try again.';
END $$;

-- Counts a change of an owner's rows. Nobody waits for anybody here: a slot that
-- another transaction has is left to it.
CREATE OR REPLACE FUNCTION {S}.count_change(which bytea, what text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	free bigint;
BEGIN
	SELECT c.slot INTO free FROM {S}.changes c WHERE c.owner = which AND c.object = what LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
	IF FOUND THEN
		UPDATE {S}.changes c SET n = n + 1 WHERE c.owner = which AND c.object = what AND c.slot = free;
	ELSE
		INSERT INTO {S}.changes (owner, object) VALUES (which, what);
	END IF;
END $$;

-- Called for the owners whose rows a statement has written.
CREATE OR REPLACE FUNCTION {S}.admit(owners bytea[], what text) RETURNS void
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	held text := coalesce(current_setting('penstock.held', true), '');
	-- Such a transaction sees the marks of when it began.
	frozen boolean := current_setting('transaction_isolation') IN ('repeatable read', 'serializable');
	news bytea[];
	o bytea;
	m jsonb;
BEGIN
	IF owners IS NULL THEN RETURN; END IF;
	SELECT array_agg(x) INTO news FROM unnest(owners) x
		WHERE strpos(held, E'\n' || {S}.lock_of(x) || ' ' || what || E'\n') = 0;
	IF news IS NULL THEN RETURN; END IF;
	-- A copy that is closed refuses at once: nobody waits to be refused.
	FOR o, m IN SELECT c.owner, c.mark FROM {S}.copies c WHERE c.owner = ANY (news) LOOP
		PERFORM {S}.must_admit(o, m);
	END LOOP;
	IF length(held) - length(replace(held, E'\n', '')) + 2 * cardinality(news) > 4 * {SLOTS} THEN
		PERFORM pg_advisory_xact_lock_shared({CLASS}, i) FROM generate_series(0, {SLOTS} - 1) i;
	ELSE
		PERFORM pg_advisory_xact_lock_shared(k) FROM (SELECT {S}.lock_of(x) AS k FROM unnest(news) x ORDER BY 1) s;
		PERFORM set_config('penstock.held',
			held || (SELECT string_agg(E'\n' || {S}.lock_of(x) || ' ' || what || E'\n', '') FROM unnest(news) x), true);
	END IF;
	FOREACH o IN ARRAY news LOOP
		IF frozen THEN
			-- A mark that was set since this transaction began makes either of these
			-- fail with a serialization failure; the next attempt sees it.
			PERFORM FROM {S}.copies c WHERE c.owner = o FOR SHARE;
			IF NOT FOUND THEN
				INSERT INTO {S}.copies (owner) VALUES (o) ON CONFLICT DO NOTHING;
			END IF;
			INSERT INTO {S}.changes (owner, object) VALUES (o, what);
		ELSE
			SELECT c.mark INTO m FROM {S}.copies c WHERE c.owner = o;
			PERFORM {S}.must_admit(o, m);
			PERFORM {S}.count_change(o, what);
		END IF;
	END LOOP;
END $$;

CREATE OR REPLACE FUNCTION {S}.refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'table % holds the rows of owners that may have moved: it can''t be truncated', TG_TABLE_NAME
		USING ERRCODE = '{TRUNCATED}', HINT = 'Use DELETE.';
END $$;

REVOKE ALL ON FUNCTION {S}.admit(bytea[], text) FROM PUBLIC;
`

// tableSQL makes the trigger functions of one table: {F} begins their names, {L}
// is its label as a literal, {O} its owner column.
const tableSQL = `
CREATE OR REPLACE FUNCTION {S}.{F}_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fence$
BEGIN
	PERFORM {S}.admit((SELECT array_agg(convert_to(o::text, 'UTF8')) FROM (SELECT DISTINCT n.{O} AS o FROM new_rows n) d WHERE o IS NOT NULL), {L});
	RETURN NULL;
END $fence$;
CREATE OR REPLACE FUNCTION {S}.{F}_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fence$
BEGIN
	PERFORM {S}.admit((SELECT array_agg(convert_to(o::text, 'UTF8')) FROM (SELECT DISTINCT n.{O} AS o FROM old_rows n) d WHERE o IS NOT NULL), {L});
	RETURN NULL;
END $fence$;
CREATE OR REPLACE FUNCTION {S}.{F}_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $fence$
BEGIN
	PERFORM {S}.admit((SELECT array_agg(convert_to(o::text, 'UTF8')) FROM (
		SELECT n.{O} AS o FROM new_rows n UNION SELECT n.{O} FROM old_rows n) d WHERE o IS NOT NULL), {L});
	RETURN NULL;
END $fence$;
`

// triggerSQL puts the triggers on a table or partition, {T}. They fire also for
// sessions that replay other servers' changes.
const triggerSQL = `
DROP TRIGGER IF EXISTS penstock_insert ON {T};
DROP TRIGGER IF EXISTS penstock_delete ON {T};
DROP TRIGGER IF EXISTS penstock_update ON {T};
DROP TRIGGER IF EXISTS penstock_truncate ON {T};
CREATE TRIGGER penstock_insert AFTER INSERT ON {T} REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION {S}.{F}_insert();
CREATE TRIGGER penstock_delete AFTER DELETE ON {T} REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {S}.{F}_delete();
CREATE TRIGGER penstock_update AFTER UPDATE ON {T} REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION {S}.{F}_update();
CREATE TRIGGER penstock_truncate BEFORE TRUNCATE ON {T} FOR EACH STATEMENT EXECUTE FUNCTION {S}.refuse_truncate();
ALTER TABLE {T} ENABLE ALWAYS TRIGGER penstock_insert;
ALTER TABLE {T} ENABLE ALWAYS TRIGGER penstock_delete;
ALTER TABLE {T} ENABLE ALWAYS TRIGGER penstock_update;
ALTER TABLE {T} ENABLE ALWAYS TRIGGER penstock_truncate;
`

// sql fills a text of this file in for a schema.
func sql(text, schema string, more ...string) string {
	return strings.NewReplacer(append([]string{
		"{S}", quote(schema), "{NAME}", literal(schema), "{SLOTS}", fmt.Sprint(slots), "{CLASS}", fmt.Sprint(lockClass),
		"{FENCED}", Fenced, "{TRUNCATED}", Truncated,
	}, more...)...).Replace(text)
}

// install brings the schema and the triggers up to date, in one transaction. What
// is there already is left alone: to put a trigger on a table, all who write to
// it are waited for.
func install(ctx context.Context, c *pgx.Conn, schema string, tables []*table) error {
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, $2)", lockClass, slots); err != nil {
			return fmt.Errorf("install: %w", err)
		}
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", quote(schema, "installed")).Scan(&there); err != nil {
			return fmt.Errorf("install: %w", err)
		}
		if err := bring(ctx, tx, schema, "schema", sql(tablesSQL, schema)+sql(functionsSQL, schema), there); err != nil {
			return err
		}
		for _, t := range tables {
			sum := sha256.Sum256([]byte(t.label))
			f := "rows_" + hex.EncodeToString(sum[:6])
			text := sql(tableSQL, schema, "{F}", f, "{L}", literal(t.label), "{O}", t.owner)
			for _, p := range append([]part{{t.oid, t.ident}}, t.parts...) {
				text += sql(triggerSQL, schema, "{F}", f, "{T}", p.ident)
			}
			fenced, err := t.fenced(ctx, tx)
			if err != nil {
				return err
			}
			if err := bring(ctx, tx, schema, t.label, text, fenced); err != nil {
				return err
			}
		}
		return nil
	})
}

// fenced reports whether the table and its partitions have all triggers, which
// they lack when the table was made anew, or an operator took them off.
func (t *table) fenced(ctx context.Context, tx querier) (bool, error) {
	tables := []uint32{t.oid}
	for _, p := range t.parts {
		tables = append(tables, p.oid)
	}
	var n int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_trigger WHERE tgrelid = ANY ($1::oid[]) AND tgenabled = 'A'
		AND tgname IN ('penstock_insert', 'penstock_delete', 'penstock_update', 'penstock_truncate')`, tables).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for triggers of %s: %w", t.label, err)
	}
	return n == 4*len(tables), nil
}

// bring runs the SQL unless it was what was run last under this name.
func bring(ctx context.Context, tx pgx.Tx, schema, name, text string, look bool) error {
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	if look {
		var same bool
		err := tx.QueryRow(ctx, sql("SELECT EXISTS (SELECT FROM {S}.installed WHERE name = $1 AND digest = $2)", schema), name, digest).Scan(&same)
		if err != nil {
			return fmt.Errorf("install: %w", err)
		}
		if same {
			return nil
		}
	}
	if _, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll(); err != nil {
		return fmt.Errorf("install %s: %w", name, err)
	}
	_, err := tx.Exec(ctx, sql(`INSERT INTO {S}.installed VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET digest = excluded.digest`, schema), name, digest)
	if err != nil {
		return fmt.Errorf("install %s: %w", name, err)
	}
	return nil
}
