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
status=$?

# Files that users name are read through the one function that knows what is written.
if grep -rnE '(^|[^_a-z])(file_map|fopen|open)\(' --include='*.c' isa ir frontend passes backend runtime tools |
  grep -v -e runtime/device.c -e tools/npu_objdump.c; then
  echo "read with diag_map_file" >&2
  status=1
fi
exit $status
