#!/bin/bash
# Runs the command lines of README.md ("$ command ...") that use our programs, in order and in a folder of their own, and
# looks for the output shown under each: its lines must come in that order, numbers may differ, "..." stands for
# anything. A command exits with 0, or with 1 when an error is shown. Other commands must name a program that exists.
# Usage: readme.sh SOURCE_DIR BUILD_TOOLS_DIR [--update]
# --update writes the numbers of today into README.md.
set -u
source=$(realpath "$1")
PATH=$(realpath "$2"):$PATH
update=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
ln -s "$source/examples" examples
: >new
failed=0
ran=0

complain() {
  echo "README.md: $*" >&2
  failed=1
}

# Numbers, their unit prefixes and the width of blanks do not count.
plain() { sed -E 's/[0-9]+(\.[0-9]+)?( [kMG]?B?\b)?/#/g; s/\b[num]([JsW])\b/\1/g; s/# /#/g; s/[[:blank:]]+/ /g; s/ $//' "$1"; }

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

# Every line of `expected` must follow in `out`; what `out` really says goes to `new`.
compare() {
  local wanted=0
  grep -q ': error: ' expected && wanted=1
  [ $code = $wanted ] || complain "'$1' exits with $code: $(cat out)"
  plain out >have
  plain expected >want
  awk 'BEGIN { n = at = bad = 0 }
       FILENAME == "have" { have[n] = $0; getline text[n] < "out"; n++; next }
       $0 == "..." || bad { getline line < "expected"; print line; next }
       { getline line < "expected"
         from = at
         while (at < n && have[at] != $0) at++
         if (at < n) print text[at++]
         else { print line; print line > "missing"; bad = 1; at = from } }
       END { exit bad }' have want >>new ||
    complain "the output of '$1' has no line like: $(cat missing)"
}

command=""
inside=no
while IFS= read -r line; do
  case "$line" in
    '```'* | '$ '*)
      [ -n "$command" ] && compare "$command"
      command=""
      printf '%s\n' "$line" >>new
      ;;
    *)
      if [ -n "$command" ]; then printf '%s\n' "$line" >>expected; else printf '%s\n' "$line" >>new; fi
      ;;
  esac
  case "$line" in
    '```'*) [ $inside = yes ] && inside=no || inside=yes ;;
    '$ '*)
      [ $inside = yes ] || continue
      command=${line#\$ }
      : >expected
      run "$command"
      ;;
  esac
done <"$source/README.md"
[ $ran -ge 5 ] || complain "only $ran commands were run"
if [ "$update" = --update ]; then cat new >"$source/README.md"; fi
exit $failed
