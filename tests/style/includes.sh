#!/bin/bash
# The include rules of the folders, and what libraries must not call. Usage: includes.sh SOURCE_DIR
set -u
cd "$1" || exit 1
failed=0
complain() {
  echo "$1" >&2
  failed=1
}

# folder: folders its files may include
rules="
support:support
isa:isa support
ir:ir support
frontend:frontend ir support
passes:passes ir isa support
backend/npu:backend/npu ir isa support
backend/host:backend/host ir support
runtime:runtime isa support
tools:tools passes backend/npu backend/host frontend ir isa runtime support
"

# Headers outside a folder's row which it may include all the same: backend/host takes the definition of the special
# functions from the ISA.
exceptions="backend/host:isa/isa.h"

sources() { find "$1" -name '*.[chly]' | sort; }

while IFS=: read -r folder allowed; do
  [ -n "$folder" ] || continue
  count=0
  for file in $(sources "$folder"); do
    count=$((count + 1))
    for header in $(sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$file"); do
      # A bare name is a file of the same folder.
      case "$header" in */*) target=$(dirname "$header") ;; *) target=$folder ;; esac
      ok=no
      for a in $allowed; do [ "$target" = "$a" ] && ok=yes; done
      case " $exceptions " in *" $folder:$header "*) ok=yes ;; esac
      [ $ok = yes ] || complain "$file: $folder/ must not include $header"
      case "$header" in
        *_internal.h) [ "$target" = "$folder" ] || complain "$file: $header belongs to $target/ alone" ;;
      esac
    done
    if grep -q '# *include *<llvm' "$file"; then
      case "$folder" in
        backend/host | runtime) ;;
        *) complain "$file: LLVM is for backend/host and runtime only" ;;
      esac
    fi
    if grep -nE '# *include *<llvm/' "$file" | grep -v 'llvm/Config/llvm-config.h'; then complain "$file: only LLVM's C interface (llvm-c/)"; fi
    if [ "$folder" != support ]; then
      if grep -nE '(^|[^_[:alnum:]>.])(malloc|calloc|realloc|free|strdup|strndup|asprintf) *\(' "$file"; then
        complain "$file: memory comes from support/ (mem_alloc, arenas)"
      fi
    fi
    if [ "$folder" != tools ]; then
      if grep -nE '(^|[^_[:alnum:]>.])(exit|_exit|printf|puts|perror) *\(' "$file"; then
        complain "$file: a library neither exits nor prints"
      fi
    fi
  done
  [ $count -gt 0 ] || complain "$folder: no sources found; the rule checks nothing"
done <<<"$rules"

exit $failed
