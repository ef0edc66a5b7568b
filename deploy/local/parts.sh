# What `up`, `restart` and `down` share: the folder, its settings, and the life of one process. Sourced, not run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
deploy=$(dirname "$here")
folder=${1:-local}
PATH=$PATH:/usr/sbin
patience_s=60

fail() {
  echo "$*" >&2
  exit 1
}

# Settings of this folder: made once, then read. Lines may be added, such as OPENAI_API_KEY=...
settings() {
  mkdir -p "$folder"/{log,run,one,two,nginx,redis,prometheus}
  folder=$(cd "$folder" && pwd)
  if [ ! -e "$folder/env" ]; then
    (umask 077 && first_settings >"$folder/env")
  fi
  set -a
  # shellcheck disable=SC1091  # written by us
  . "$folder/env"
  set +a
}

first_settings() {
  cat <<END
NGINX_PORT=${NGINX_PORT:-8080}
ONE_PORT=${ONE_PORT:-31337}
TWO_PORT=${TWO_PORT:-31338}
POSTGRES_PORT=${POSTGRES_PORT:-54329}
REDIS_PORT=${REDIS_PORT:-63799}
PROMETHEUS_PORT=${PROMETHEUS_PORT:-9090}
TROYPROXY=${TROYPROXY:-$(command -v troyproxy || echo "$(dirname "$deploy")/.venv/bin/troyproxy")}
POSTGRES_PASSWORD=$(secret)
REDIS_PASSWORD=$(secret)
TROY_SECRET_KEY=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')
TROY_ADMIN_TOKEN=$(secret)
END
}

secret() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

process() { head -n 1 "$folder/run/$1.pid" 2>/dev/null || true; }

# When a process began: after a restart of the machine its number may be somebody else's.
began() { ps -o stat=,lstart= -p "$1" 2>/dev/null | awk '$1 !~ /^Z/ { $1 = ""; print }'; }

runs() {
  local pid since
  pid=$(process "$1")
  [ -n "$pid" ] || return 1
  since=$(began "$pid")
  [ -n "$since" ] && [ "$since" = "$(tail -n 1 "$folder/run/$1.pid")" ]
}

# begin NAME COMMAND...: in the background, out of reach of the terminal's signals
begin() {
  local name=$1
  shift
  setsid "$@" >>"$folder/log/$name.log" 2>&1 </dev/null &
  printf '%s\n%s\n' $! "$(began $!)" >"$folder/run/$name.pid"
}

# end NAME SIGNAL: asks, and waits until it is gone
end() {
  local tenths=0
  runs "$1" || return 0
  kill -s "$2" "$(process "$1")"
  while runs "$1"; do
    [ $((tenths += 1)) -lt 900 ] || fail "$1 does not end; see $folder/log/$1.log"
    sleep 0.1
  done
  rm -f "$folder/run/$1.pid"
}

# ready NAME COMMAND...: waits until COMMAND succeeds
ready() {
  local name=$1 since=$SECONDS
  shift
  until "$@" >/dev/null 2>&1; do
    if ! runs "$name" || [ $((SECONDS - since)) -ge $patience_s ]; then
      tail -n 20 "$folder/log/$name.log" >&2
      fail "$name did not start"
    fi
    sleep 0.1
  done
}

as_postgres() {
  # PostgreSQL refuses to run as root.
  if [ "$(id -u)" = 0 ]; then exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; else exec "$@"; fi
}

gateway_environment() {
  export TROY_HOST=127.0.0.1 TROY_CONFIG=$folder/troyproxy.yaml
  export TROY_DATABASE_URL=postgresql+asyncpg://troyproxy:$POSTGRES_PASSWORD@127.0.0.1:$POSTGRES_PORT/troyproxy
  export TROY_REDIS_URL=redis://:$REDIS_PASSWORD@127.0.0.1:$REDIS_PORT/0
}

# gateway one|two: starts it and waits until it is ready
gateway() {
  local port=$ONE_PORT
  [ "$1" = one ] || port=$TWO_PORT
  (cd "$folder/$1" && TROY_PORT=$port begin "$1" "$TROYPROXY" serve)
  ready "$1" curl -fsS "http://127.0.0.1:$port/readyz"
}
