# Helpers of the command tests. Sourced with: TOOLS_DIR SOURCE_DIR
set -u
PATH=$1:$PATH
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# ok COMMAND...: must exit 0; output is in $work/out and $work/err.
ok() {
  "$@" >out 2>err || {
    fail "$* (exit $?)"
    cat err >&2
  }
}

# ends STATUS TEXT COMMAND...: must exit with STATUS, with TEXT on standard error and nothing on standard output.
ends() {
  local status=$1 text=$2 code
  shift 2
  "$@" >out 2>err
  code=$?
  [ $code = "$status" ] || fail "$*: exit status $code, not $status"
  grep -qF -- "$text" err || {
    fail "$*: no '$text' in:"
    cat err >&2
  }
  [ ! -s out ] || fail "$*: wrote to standard output"
}

# What was given is wrong; the command is; the simulated program is.
bad() { ends 1 "$@"; }
misused() { ends 2 "$@"; }
trapped() { ends 3 "$@"; }

# has TEXT FILE
has() {
  grep -qF -- "$1" "$2" || {
    fail "no '$1' in $2:"
    head -20 "$2" >&2
  }
}

# absent FILE...: nothing was written, temporaries included.
absent() {
  for f in "$@"; do [ ! -e "$f" ] || fail "$f was written"; done
  [ -z "$(find . -name '.npucc-*')" ] || fail "a temporary file was left"
}

same() {
  cmp "$1" "$2" || fail "$1 and $2 differ"
}
