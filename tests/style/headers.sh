#!/bin/bash
# Every header compiles alone. Usage: headers.sh DIR COMPILER [compiler options...]
set -u
cd "$1" || exit 1
compiler=$2
shift 2
failed=0
count=0
for header in $(find support isa ir frontend passes backend runtime tools -name '*.h' 2>/dev/null | sort); do
  count=$((count + 1))
  if ! echo "#include \"$header\"" |
    "$compiler" "$@" -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -x c -; then
    echo "$header does not compile alone" >&2
    failed=1
  fi
done
[ $count -gt 4 ] || { echo "only $count headers found in $1" >&2; failed=1; }
exit $failed
