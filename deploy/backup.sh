#!/usr/bin/env bash
# Writes a backup of the service's database while the service runs: one consistent snapshot of the database in DATABASE_URL.
#
#   DATABASE_URL=postgres://… deploy/backup.sh custody-2026-01-31.dump
#
# Needs pg_dump and pg_restore of the server's version or a newer one. The file is complete, or it does not exist; nothing is
# overwritten. It holds custody data and encrypted secrets, which only MASTER_KEY decrypts: keep that apart from it.
# Exit codes: 0 success, 1 failed, 2 wrong usage.
set -euo pipefail
umask 077

fail() {
  echo "backup: $2" >&2
  exit "$1"
}

[ $# -eq 1 ] || fail 2 "name the file to write: DATABASE_URL=postgres://… $0 FILE"
[ -n "${DATABASE_URL:-}" ] || fail 2 "DATABASE_URL is not set"
for program in pg_dump pg_restore; do
  command -v "$program" >/dev/null || fail 1 "$program is not installed"
done
file=$1
[ ! -e "$file" ] || fail 1 "$file exists and is not overwritten"

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

partial=$(mktemp "$file.XXXXXX") || fail 1 "$file cannot be written"
trap 'rm -f "$partial"' EXIT
# Owners and grants are those of the database that it is restored into.
pg_dump --dbname="$url" --format=custom --no-owner --no-privileges --file="$partial" || fail 1 "pg_dump failed; nothing was written"
pg_restore --list "$partial" >/dev/null || fail 1 "the backup cannot be read; nothing was written"
mv -n "$partial" "$file" && [ ! -e "$partial" ] || fail 1 "$file cannot be written; did something else write it meanwhile?"
echo "backup: $file, $(wc -c <"$file" | tr -d ' ') bytes"
