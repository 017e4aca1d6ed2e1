#!/bin/bash
# Usage: includes.sh SOURCE_DIR
set -u
cd "$1" || exit 1
args=()
for folder in support isa ir frontend passes backend/npu backend/host runtime tools; do
  args+=("FOLDER=$folder")
  while read -r file; do args+=("$file"); done < <(find $folder -name '*.[chly]' | sort)
done
awk -f tests/style/includes.awk "${args[@]}"
