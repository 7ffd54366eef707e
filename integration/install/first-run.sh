#!/usr/bin/env bash
# Measures how long each way of docs/install.md takes to the first run of a job, three times each, and how much of a disk it takes. Nothing is
# downloaded while the clock runs: archives, images and modules are there before, and the cache of Go is empty.
#
#   integration/install/first-run.sh [WAY...]     default: archive image compose build program; compose needs Docker Compose
#
# Compose runs on images of the programs that are installed here: redis-server, PostgreSQL and Prometheus. There is none of Grafana, so it is left out.
set -euo pipefail
cd "$(dirname "$0")/../.."
repo=$PWD
work=$(mktemp -d)
chmod 755 "$work"
name=first-run-$$
started=()

finish() {
	stop
	docker image rm --force "$name" "$name-redis" "$name-postgres" "$name-prometheus" >/dev/null 2>&1 || true
	chmod -R u+w "$work"
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# stop ends what a way has started.
stop() {
	docker rm --force "$name" >/dev/null 2>&1 || true
	if [ -f "$work/compose.yaml" ]; then
		compose down --volumes >/dev/null 2>&1 || true
	fi
	[ ! -f "$work/redis.pid" ] || started+=("$(cat "$work/redis.pid")")
	local pid
	for pid in "${started[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	started=()
}

compose() { docker compose --file deploy/compose.yaml --file "$work/compose.yaml" --project-name "$name" "$@"; }

# pack IMAGE PROGRAM... makes an image of programs and their libraries, and of the files in its folder.
pack() {
	local image=$1 root=$work/$1 file
	shift
	for file in "$@"; do
		{ echo "$file"; ldd "$file" | grep -oE '/[^ ]+' || true; } | sort -u | while read -r path; do
			mkdir -p "$root$(dirname "$path")" && cp --dereference "$path" "$root$path"
		done
	done
	tar --directory "$root" --create . | docker import --change 'ENV PATH=/usr/bin:/bin' - "$image" >/dev/null
}

prepare_archive() {
	[ -f "$work/onbeat.tar.gz" ] && return
	make --no-print-directory build >/dev/null
	tar --create --gzip --file "$work/onbeat.tar.gz" LICENSE THIRD_PARTY_LICENSES README.md CHANGELOG.md -C bin onbeat
	go build -trimpath -o "$work/unstripped" ./cmd/onbeat
	echo "archive $(size "$work/onbeat.tar.gz"), program $(size bin/onbeat), with debugging information $(size "$work/unstripped")"
}
archive() {
	mkdir "$work/here" && tar --extract --file "$work/onbeat.tar.gz" --directory "$work/here"
	cd "$work/here" && exec ./onbeat dev
}

prepare_image() {
	[ -f "$work/image.tar.gz" ] && return
	make --no-print-directory image IMAGE="$name" >/dev/null 2>&1
	docker save "$name" | gzip >"$work/image.tar.gz"
	echo "image $(size "$work/image.tar.gz")"
}
image() {
	docker load --quiet --input "$work/image.tar.gz"
	exec docker run --rm --name "$name" "$name" dev
}

prepare_compose() {
	[ -f "$work/compose.yaml" ] && return
	prepare_image
	docker load --quiet --input "$work/image.tar.gz" >/dev/null
	pack "$name-redis" "$(command -v redis-server)"
	pack "$name-prometheus" "$(command -v prometheus)"
	local server
	server=$(dirname "$(command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' | tail -n 1)")
	server=$(dirname "$(realpath "$server/postgres")")
	local root=$work/$name-postgres share
	share=$("$server/pg_config" --sharedir)
	mkdir -p "$root$share" "$root$("$server/pg_config" --pkglibdir)" "$root/etc" "$root/tmp" "$root/var/lib/postgresql" "$root/bin"
	cp -r "$share/." "$root$share" && cp -r "$("$server/pg_config" --pkglibdir)/." "$root$("$server/pg_config" --pkglibdir)"
	cp --dereference /bin/sh "$root/bin/sh"
	echo "postgres:x:65532:65532::/tmp:/bin/sh" >"$root/etc/passwd"
	cat >"$root/bin/begin" <<-SH
		#!/bin/sh
		set -e
		echo "\$POSTGRES_PASSWORD" >/tmp/password
		$server/initdb -D /var/lib/postgresql/data -U "\$POSTGRES_USER" --pwfile /tmp/password -A scram-sha-256 >/dev/null
		echo "host all all all scram-sha-256" >>/var/lib/postgresql/data/pg_hba.conf
		echo "create database \$POSTGRES_USER" | $server/postgres --single -D /var/lib/postgresql/data postgres >/dev/null
		exec $server/postgres -D /var/lib/postgresql/data -k /tmp -c listen_addresses='*'
	SH
	chmod 755 "$root/bin/begin" && chmod 777 "$root/tmp" "$root/var/lib/postgresql"
	pack "$name-postgres" "$server/postgres" "$server/initdb" /bin/sh
	cat >"$work/compose.yaml" <<-YAML
		services:
		  redis: {image: $name-redis}
		  postgres: {image: $name-postgres, user: "65532", command: [/bin/begin]}
		  prometheus: {image: $name-prometheus, ports: !reset [], command: [prometheus, --config.file=/etc/prometheus/prometheus.yml, --storage.tsdb.path=/prometheus]}
		  onbeat-1: {ports: !reset []}
		  onbeat-2: {ports: !reset []}
		  grafana: !reset null
	YAML
	export ONBEAT_IMAGE=$name
}
compose_up() { compose up --pull never; }

build() {
	make --no-print-directory build
	mkdir "$work/here" && cd "$work/here" && exec "$repo/bin/onbeat" dev
}

prepare_program() { port=$((20000 + RANDOM % 20000)); }
program() {
	mkdir "$work/here" && cd "$work/here" && cp "$repo/examples/first-job/main.go" .
	redis-server --port "$port" --bind 127.0.0.1 --save '' --daemonize yes --dir "$work/here" --pidfile "$work/redis.pid" >/dev/null
	go mod init example.com/quickstart
	go mod edit -replace "github.com/onbeat/onbeat=$repo"
	GOPROXY=off GOFLAGS=-mod=mod go mod tidy
	go build -o quickstart . && REDIS_URL=redis://127.0.0.1:$port exec ./quickstart
}

size() { awk -v n="$(stat --format %s "$1")" 'BEGIN { printf "%.1f MB", n / 1e6 }'; }

# measure WAY TEXT COMMAND prints how long it took until the output has TEXT.
measure() {
	local way=$1 text=$2 command=$3 took=() from
	for _ in 1 2 3; do
		! declare -F "prepare_$way" >/dev/null || "prepare_$way"
		rm -rf "$work/here" "$work/cache"
		[ "$way" != image ] || docker image rm --force "$name" >/dev/null
		export GOCACHE=$work/cache
		from=$EPOCHREALTIME
		("$command") >"$work/out" 2>&1 &
		started+=($!)
		until grep -q "$text" "$work/out"; do
			kill -0 "${started[-1]}" 2>/dev/null || { cat "$work/out" >&2; exit 1; }
			sleep 0.01
		done
		took+=("$(awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')")
		unset GOCACHE
		stop
	done
	echo "$way: $(printf '%s\n' "${took[@]}" | sort -n | sed -n 2p) s (${took[*]})"
}

for way in "${@:-archive image compose build program}"; do
	for way in $way; do
		case $way in
		program) measure program warming program ;;
		compose) measure compose '"message":"echo"' compose_up ;;
		*) measure "$way" '"message":"echo"' "$way" ;;
		esac
	done
done
