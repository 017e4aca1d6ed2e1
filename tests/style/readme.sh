#!/bin/bash
# Runs the command lines of README.md ("$ command ...") that use our programs, in order and in a folder of their own, and
# looks for the output shown under each: its lines must come in that order, numbers may differ, "..." stands for
# anything. A command exits with 0, or with 1 when an error is shown. Other commands must name a program that exists.
# Usage: readme.sh SOURCE_DIR BUILD_TOOLS_DIR
set -u
source=$1
PATH=$2:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ln -s "$source/examples" examples
failed=0
ran=0

complain() {
  echo "README.md: $*" >&2
  failed=1
}

# Numbers and the width of blanks do not count.
plain() { sed -E 's/[0-9]+(\.[0-9]+)?/#/g; s/[[:blank:]]+/ /g; s/ $//' "$1"; }

run() {
  local command=$1
  code=0
  case "$command" in
    npucc* | npu-* | npusim* | cat* | printf*)
      ran=$((ran + 1))
      bash -o pipefail -c "$command" >out 2>&1 </dev/null
      code=$?
      ;;
    export*) : >out ;;
    */*)
      command=${command%% *}
      [ -x "$source/$command" ] || complain "there is no program $command"
      : >out
      ;;
    *) : >out ;;
  esac
}

# Every line of `expected` must follow in `out`.
compare() {
  local wanted=0
  grep -q ': error: ' expected && wanted=1
  [ $code = $wanted ] || complain "'$1' exits with $code: $(cat out)"
  plain out >have
  plain expected | grep -v '^\.\.\.$' >want
  awk 'BEGIN { n = at = 0 }
       NR == FNR { have[n++] = $0; next }
       { while (at < n && have[at] != $0) at++
         if (at++ >= n) { print; exit 1 } }' have want >missing ||
    complain "the output of '$1' has no line like: $(cat missing)"
}

command=""
inside=no
while IFS= read -r line; do
  case "$line" in
    '```'*)
      [ -n "$command" ] && compare "$command"
      command=""
      [ $inside = yes ] && inside=no || inside=yes
      ;;
    '$ '*)
      [ $inside = yes ] || continue
      [ -n "$command" ] && compare "$command"
      command=${line#\$ }
      : >expected
      run "$command"
      ;;
    *) [ -n "$command" ] && printf '%s\n' "$line" >>expected ;;
  esac
done <"$source/README.md"
[ $ran -ge 5 ] || complain "only $ran commands were run"
exit $failed
