#!/bin/sh
# Installs the Debian packages npucc is built from, when some are missing. Works as root or with sudo.
set -eu

packages="cmake ninja-build gcc g++ pkg-config flex bison llvm-14-dev libcmocka-dev libelf-dev libcjson-dev
  uthash-dev libinih-dev libminizip-dev zlib1g-dev"

missing=""
for p in $packages "$@"; do
  case "$(dpkg-query -W -f='${Status}' "$p" 2>/dev/null || true)" in
    *" installed") ;;
    *) missing="$missing $p" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  root=""
elif command -v sudo >/dev/null; then
  root="sudo"
else
  echo "setup: these packages are missing; install them as root: apt-get install$missing" >&2
  exit 1
fi
echo "setup: installing$missing"
$root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null
