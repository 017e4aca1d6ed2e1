#!/bin/bash
# Usage: plugins.sh TOOLS_DIR SOURCE_DIR BROKEN_PASSES.so OTHER_TABLES.so
# Plugins whose passes leave the IR broken, or crash; a plugin built against other tables.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
broken=$3 other=$4

cat >two.mdl <<'END'
model two(x: f32[4]) -> (y: f32[4]) {
  return -relu(x)
}
END
ok npucc two.mdl --passes= --emit graph -o two.ir

# ---- what a pass leaves broken: found after it, without --verify-each, by both commands
for pass in wrong-type no-type no-operand raw-operand use-before-def taken-out no-return wrong-level no-such-op \
  ring short-list ring-of-uses no-value foreign-result untyped-argument no-body lie-about-level; do
  bad "pass \`$pass\` reported success and left this" npu-opt --load-pass="$broken" --passes=$pass two.ir
  bad "pass \`$pass\` reported success and left this" npucc --load-pass="$broken" \
    --passes=canonicalize,$pass,lower,tile,plan,pipeline,sync,allocate two.mdl -o two.bin --reproducer $pass.ir
  has "$pass.ir repeats it" err
  bad "pass \`$pass\` reported success and left this" npu-opt --load-pass="$broken" --passes=$pass $pass.ir
  absent two.bin $pass.ir.draft
done
has "use-before-def" use-before-def.ir

# The sanitizers' own handlers would answer instead.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0:handle_sigfpe=0:handle_abort=0
# ---- a crash: which pass, the reproducer, exit status 70
crash() {
  local what=$1 pass=$2
  npucc --load-pass="$broken" --passes=canonicalize,$pass two.mdl -o two.bin --reproducer crash.ir >out 2>err
  [ $? = 70 ] || fail "$pass: exit status $?, not 70"
  has "error: pass \`$pass\` crashed on @two: $what" err
  has "crash.ir repeats it" err
  absent two.bin crash.ir.draft
  has "// npu-opt --passes='$pass'" crash.ir
  rm -f again.sh
  sed -n 's|^// ||p;q' crash.ir >again.sh
  bash again.sh >out 2>err
  [ $? = 70 ] || fail "$pass: the reproducer's command ends with $?"
  has "pass \`$pass\` crashed" err
  rm -f crash.ir
  npu-opt --load-pass="$broken" --passes=$pass two.ir >out 2>err
  [ $? = 70 ] || fail "$pass without --reproducer: exit status $?"
  absent crash.ir crash.ir.draft
}
crash "segmentation fault" segv
crash "abort" aborts
crash "arithmetic exception" divides
crash "segmentation fault" recurses

# ---- nothing is left behind by what went well, and a place that cannot be written is said before
ok npucc --load-pass="$broken" --passes=canonicalize,harmless two.mdl --emit graph -o two.out --reproducer fine.ir
absent fine.ir fine.ir.draft
ok npucc --load-pass="$broken" --passes=harmless,harmless two.mdl --emit graph -o two.out --reproducer none/fine.ir
[ "$(grep -c 'cannot write none/fine.ir' err)" = 1 ] || fail "one warning about none/fine.ir"

# ---- other tables
bad "built against other tables: it has \`op FROB frob\`" npu-opt --load-pass="$other" --list-passes
bad "rebuild it with this npucc's headers" npucc --load-pass="$other" two.mdl
exit $failed
