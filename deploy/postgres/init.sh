#!/bin/sh
# Runs once, on an empty volume: a role and a database for the service and for Temporal each, neither of them a superuser.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set custody="$CUSTODY_POSTGRES_PASSWORD" --set temporal="$TEMPORAL_POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE custody LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'custody';
CREATE DATABASE custody OWNER custody;
REVOKE ALL ON DATABASE custody FROM PUBLIC;
CREATE ROLE temporal LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'temporal';
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE ALL ON DATABASE temporal FROM PUBLIC;
REVOKE ALL ON DATABASE temporal_visibility FROM PUBLIC;
SQL
