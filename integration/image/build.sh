#!/usr/bin/env bash
# Builds the image that the tests start Redis from, out of the redis-server that
# is installed on this machine and the libraries it is linked with. No registry is
# asked for anything.
#
#   integration/image/build.sh [NAME]      default: onbeat-test-redis:local
set -euo pipefail

image=${1:-${ONBEAT_TEST_IMAGE:-onbeat-test-redis:local}}

server=$(command -v redis-server) || {
	echo "build.sh: there is no redis-server on PATH to build $image from" >&2
	exit 1
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/bin" "$root/data" "$root/tmp"
chmod 1777 "$root/tmp"
cp --dereference "$server" "$root/usr/bin/redis-server"

# Each library at the path that the loader will look for it under. The pattern
# leaves out linux-vdso, which is no file.
ldd "$server" | grep --only-matching --extended-regexp '/[^ ]+' | sort --unique | while read -r lib; do
	mkdir -p "$root$(dirname "$lib")"
	cp --dereference "$lib" "$root$lib"
done

tar --directory "$root" --owner 0 --group 0 --create . | docker import \
	--change 'ENV PATH=/usr/bin' \
	--change 'WORKDIR /data' \
	--change 'CMD ["redis-server"]' \
	- "$image" >/dev/null

echo "$image: $("$server" --version | grep --only-matching 'v=[0-9.]*' | sed 's/v=/redis-server /')"
