#!/bin/bash
# passes/README.md shows what npu-opt --list-passes prints. Usage: list.sh NPU_OPT README
shown=$(sed -n '/<!-- list-passes -->/,/<!-- end -->/p' "$2" | sed '/^<!--/d; /^```/d')
diff <(echo "$shown") <("$1" --list-passes) || {
  echo "$2 does not show what npu-opt --list-passes prints" >&2
  exit 1
}
