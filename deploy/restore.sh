#!/usr/bin/env bash
# Restores a backup of backup.sh into an empty database.
#
#   createdb restored
#   DATABASE_URL=postgres://…/restored deploy/restore.sh custody-2026-01-31.dump
#
# Needs psql and pg_restore of the server's version or a newer one. A database that has anything in it is refused, and a
# restore that fails leaves it empty. Start nothing on the result before you have read "Backing up and restoring" in
# docs/operations.md: a restored service sends webhooks.
# Exit codes: 0 success, 1 failed, 2 wrong usage.
set -euo pipefail

fail() {
  echo "restore: $2" >&2
  exit "$1"
}

[ $# -eq 1 ] || fail 2 "name the file to restore: DATABASE_URL=postgres://… $0 FILE"
[ -n "${DATABASE_URL:-}" ] || fail 2 "DATABASE_URL is not set"
for program in psql pg_restore; do
  command -v "$program" >/dev/null || fail 1 "$program is not installed"
done
file=$1
pg_restore --list "$file" >/dev/null || fail 1 "$file is not a backup that can be read"

# The password is not an argument, which other users of the machine can see.
url=$DATABASE_URL
if [[ $url =~ ^([a-z]+://[^:@/]*):([^@/]*)@(.*)$ ]]; then
  url="${BASH_REMATCH[1]}@${BASH_REMATCH[3]}"
  password=${BASH_REMATCH[2]//\\/\\\\}
  PGPASSWORD=$(printf '%b' "${password//%/\\x}")
  export PGPASSWORD
fi
[[ $url =~ ^postgres(ql)?://([^:@/?]*@)?[^@]*$ && ! $url =~ [?\&]password= ]] ||
  fail 2 "DATABASE_URL must be postgres://user:password@host/database, with special characters of the password percent-encoded"
query() {
  psql --dbname="$url" --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --command="$1"
}

# Schemas, and everything in a schema: tables, types, functions and the rest. What an extension brings does not count.
found=$(query "WITH schemas AS (SELECT oid, nspname FROM pg_namespace n WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema'
    AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_namespace'::regclass AND e.objid = n.oid AND e.deptype = 'e'))
  SELECT (SELECT count(*) FROM schemas WHERE nspname <> 'public') + (SELECT count(*) FROM pg_largeobject_metadata) +
    (SELECT count(*) FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid IN (SELECT oid FROM schemas)
      AND d.classid NOT IN ('pg_extension'::regclass, 'pg_default_acl'::regclass)
      AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e'))") ||
  fail 1 "the database cannot be reached"
[ "$found" = 0 ] || fail 1 "the database is not empty, and nothing is overwritten: restore into a new one"

# All or nothing.
pg_restore --dbname="$url" --single-transaction --exit-on-error --no-owner --no-privileges "$file" ||
  fail 1 "pg_restore failed; the database is still empty"
# Not the server's own tables, each of which causes a warning without rights to it. A partitioned table includes its partitions.
tables=$(query "SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'") &&
  query "ANALYZE $tables" || fail 1 "everything is restored, but ANALYZE failed: run it before you start the service"
echo "restore: done. Check MASTER_KEY with \`custody doctor\`, start \`--roles api\` only, and go on as docs/operations.md says."
