#!/usr/bin/env bash
# Real servers for the integration tests, on Debian: PostgreSQL with pgvector, and Redis; and Chromium, which reads pages.
#
#   services.sh install       puts the programs on the machine; what is there already is left as it is
#   services.sh start <dir>   private servers on free loopback ports, data in <dir>; writes <dir>/env to source
#   services.sh stop <dir>    ends exactly those servers; the data stays
#
# All three are safe to repeat. The system's own services are never started or stopped.
set -euo pipefail

say() { echo "services: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# ---------------------------------------------------------------- install

# Programs of the newest PostgreSQL server on this machine; empty when there is none.
pg_bin() { find /usr/lib/postgresql -path '*/bin/initdb' -printf '%h\n' 2>/dev/null | sort -V | tail -n 1; }
pg_major() { basename "$(dirname "$(pg_bin)")"; }

has_redis() { command -v redis-server >/dev/null; }
has_postgres() { [ -n "$(pg_bin)" ]; }
# For the chaos campaign: one worker's wall clock is set wrong.
has_faketime() { [ -e /usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 ]; }
# For the pages that people open: the tests in a browser are skipped without it.
has_chromium() { command -v chromium >/dev/null; }
has_vector() { has_postgres && [ -e "/usr/share/postgresql/$(pg_major)/extension/vector.control" ]; }

# A busy mirror, or someone else's hold on the package lock, passes: three tries before giving up.
apt_get() {
  local try
  for try in 1 2 3; do
    apt-get -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@" </dev/null && return
    say "apt-get failed, try $try of 3"
    sleep $((try * 5))
    dpkg --configure -a --force-confold </dev/null || true # an install that was killed leaves dpkg in need of this
  done
  return 1
}
apt_install() { apt_get install --no-install-recommends --no-upgrade -o Dpkg::Options::=--force-confold "$@"; }

# Debian starts what it installs and makes a cluster of its own. Not while we install.
no_autostart() {
  local policy=/usr/sbin/policy-rc.d cluster=/etc/postgresql-common/createcluster.d/mason-ci.conf
  if [ ! -e "$policy" ]; then
    temporary+=("$policy")
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  temporary+=("$cluster")
  mkdir -p "$(dirname "$cluster")"
  echo 'create_main_cluster = false' >"$cluster"
}

# From a package where this release has one. Debian 12 has none: the next release's source, built for our server.
install_vector() {
  local major codename mirror build own
  major=$(pg_major)
  if [ -n "$(apt-cache search --names-only "^postgresql-$major-pgvector\$")" ]; then
    apt_install "postgresql-$major-pgvector"
    return
  fi
  apt_install build-essential "postgresql-server-dev-$major"

  # The mirror is the one this machine uses. List and index stand in the build folder: /etc is left as it is.
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # shellcheck disable=SC2016 # apt's placeholder, not ours
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $codename" 'Label: Debian' | sed -n 1p)
  [ -n "$mirror" ] || die "no package source for Debian $codename is configured here"
  build=$(mktemp -d /tmp/pgvector.XXXXXX)
  temporary+=("$build")
  chmod 755 "$build" # apt downloads under a user of its own
  mkdir -p "$build/lists/partial"
  echo "deb-src $mirror trixie main" >"$build/sources.list"
  own=(-o Dir::Etc::SourceList="$build/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$build/lists")
  apt_get update "${own[@]}"
  cd "$build"
  apt_get source "${own[@]}" pgvector
  cd pgvector-*/
  # No -march=native: a cached disk may wake up on another processor. No JIT bitcode: it wants clang.
  make -s -j"$(nproc)" install OPTFLAGS= with_llvm=no PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config"
}

install_all() {
  if has_redis && has_vector && has_faketime && has_chromium; then return; fi
  [ "$(id -u)" = 0 ] || exec sudo -n "$0" install
  export DEBIAN_FRONTEND=noninteractive
  temporary=()
  trap 'rm -rf "${temporary[@]}"' EXIT
  no_autostart
  apt_get update
  has_redis || apt_install redis-server
  has_faketime || apt_install faketime
  has_postgres || apt_install postgresql
  has_vector || install_vector
  # large, and not needed to run Mason: a mirror without it ends nothing
  has_chromium || apt_install chromium || say 'no chromium: the tests in a browser are skipped'
  has_redis || die 'installed, yet there is no redis-server'
  has_vector || die 'installed, yet PostgreSQL has no vector.control'
}

# ---------------------------------------------------------------- start, stop

# PostgreSQL refuses to run as root.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

# Two free loopback ports below the range of outgoing connections, so that none is taken while a test restarts a server.
free_ports() {
  node -e '
    const { createServer } = require("node:net");
    const pick = (found) => {
      if (found.length === 2) return console.log(found.join(" "));
      const port = 20000 + Math.floor(Math.random() * 12000);
      const server = createServer().once("error", () => pick(found));
      server.listen(port, "127.0.0.1", () => server.close(() => pick(found.includes(port) ? found : [...found, port])));
    };
    pick([]);'
}

superuser_sql() { psql -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$pg_port" -U postgres "$@"; }

answers() {
  [ -e "$dir/env" ] || return 1
  (
    # shellcheck source=/dev/null
    . "$dir/env"
    [ "$(timeout 5 psql -X -At -c 'select 1' "$TEST_DATABASE_URL" 2>/dev/null)" = 1 ] &&
      [ "$(timeout 5 redis-cli -u "$TEST_REDIS_URL" ping 2>/dev/null)" = PONG ]
  )
}

start_postgres() {
  local pg=$dir/pg unfinished=$dir/pg.unfinished
  [ ! -e "$unfinished" ] || rm -rf "$pg" # an earlier start was cut off half-way
  if [ ! -e "$pg/PG_VERSION" ]; then
    touch "$unfinished"
    mkdir -m 700 "$pg"
    [ "$(id -u)" != 0 ] || chown postgres: "$pg"
    as_postgres "$bin/initdb" -D "$pg" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8
    cat >>"$pg/postgresql.conf" <<-CONF
	listen_addresses = '127.0.0.1'
	unix_socket_directories = '$pg'
	max_connections = 300
	fsync = ${MASON_SERVICES_FSYNC:-on}
	timezone = 'UTC'
	CONF
  fi
  as_postgres "$bin/pg_ctl" -D "$pg" -l "$pg/server.log" -o "-p $pg_port" -w -t 60 start
  [ -e "$unfinished" ] || return 0
  # The role of the tests is no superuser, as in production. Only a superuser can add the extension,
  # so it also goes into the template of the databases that tests create.
  superuser_sql -d template1 -c 'CREATE EXTENSION vector'
  superuser_sql -d postgres -c 'CREATE ROLE mason_ci LOGIN CREATEROLE CREATEDB NOSUPERUSER' \
    -c 'CREATE DATABASE mason_test OWNER mason_ci'
  rm "$unfinished"
}

start_redis() {
  mkdir -p "$dir/redis"
  redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$dir/redis" --appendonly yes --save '' \
    --maxmemory-policy noeviction --daemonize yes --pidfile "$dir/redis/redis.pid" --logfile "$dir/redis/server.log"
}

# A failed start shows its logs on stderr and leaves nothing running.
give_up() {
  say 'start failed:'
  tail -n 40 "$dir/start.log" "$dir/pg/server.log" "$dir/redis/server.log" >&2 2>/dev/null || true
  stop
}

start() {
  local bin pg_port redis_port
  if answers; then return; fi
  if ! has_redis || ! has_vector; then die 'run "services.sh install" first'; fi
  stop
  trap give_up EXIT
  bin=$(pg_bin)
  read -r pg_port redis_port < <(free_ports)
  start_postgres >"$dir/start.log" 2>&1
  start_redis >>"$dir/start.log" 2>&1
  cat >"$dir/env" <<-ENV
	export TEST_DATABASE_URL=postgres://mason_ci@127.0.0.1:$pg_port/mason_test
	export TEST_REDIS_URL=redis://127.0.0.1:$redis_port
	export TEST_SUPERUSER_URL=postgres://postgres@127.0.0.1:$pg_port/postgres
	ENV
  for _ in {1..50}; do
    if answers; then
      trap - EXIT
      return
    fi
    sleep 0.2
  done
  return 1
}

# Both servers work in their data folder; that tells ours from a stranger who was given an old number.
works_in() { [ "$(readlink "/proc/$1/cwd")" = "$2" ]; }

# Ends the process in a pid file and waits until it is gone. end <data folder> <pid file> <signal> <last resort>
end() {
  local pid
  pid=$(head -n 1 "$2" 2>/dev/null) || return 0
  works_in "$pid" "$1" || return 0
  kill "-$3" "$pid" || true
  kill -CONT "$pid" 2>/dev/null || true # a test may have frozen it
  for _ in {1..100}; do
    works_in "$pid" "$1" || return 0
    sleep 0.1
  done
  kill "-$4" "$pid" || true
}

stop() {
  end "$dir/redis" "$dir/redis/redis.pid" TERM KILL
  end "$dir/pg" "$dir/pg/postmaster.pid" INT QUIT
  rm -f "$dir/env"
}

case "${1-} $#" in
  'install 1') install_all ;;
  'start 2' | 'stop 2')
    dir=$(realpath -m "$2")
    if [ "$1" = start ]; then
      mkdir -p "$dir"
      chmod a+x "$dir" # user postgres must get through
    fi
    cd / # not in a folder that user postgres may not enter
    "$1"
    ;;
  *) die 'usage: services.sh install | start <dir> | stop <dir>' ;;
esac
