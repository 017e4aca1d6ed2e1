#!/bin/bash
# Usage: install.sh SOURCE_DIR BUILD_DIR CMAKE C_COMPILER COMPILER_FLAGS
set -eu
source=$1 build=$2 cmake=$3 cc=$4 flags=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
export CC=$cc CFLAGS=$flags
# A program built with sanitizers exits with leaks of the loader's own otherwise.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}

step() { echo "== $1"; }

step "install"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null
for program in npucc npu-opt npu-as npu-objdump npu-diff npusim; do "$prefix/bin/$program" --version; done

step "machine files, the pass template and the manuals"
for file in "$source"/isa/machines/*; do cmp "$file" "$prefix/share/npucc/machines/$(basename "$file")"; done
for file in "$source"/examples/pass_template/*; do cmp "$file" "$prefix/share/npucc/pass_template/$(basename "$file")"; done
for manual in frontend ir isa passes runtime; do cmp "$source/$manual/README.md" "$prefix/share/doc/npucc/$manual.md"; done
cmp "$source/README.md" "$prefix/share/doc/npucc/README.md"

step "installed headers compile alone"
"$source/tests/style/headers.sh" "$prefix/include/npucc" "$cc" -I"$prefix/include/npucc"

step "C++ programs call what C compiled"
{
  (cd "$prefix/include/npucc" && find . -name '*.h' -printf '#include "%P"\n')
  echo 'void *f[] = {(void *)strbuf_free, (void *)dtype_holds, (void *)tensor_file_write, (void *)isa_manual,'
  echo '  (void *)ir_print_dot, (void *)pass_manager_run, (void *)mdl_manual, (void *)pipeline_for_level,'
  echo '  (void *)npu_emit, (void *)host_print_llvm, (void *)npurt_trace_write, (void *)npucc_host};'
} >"$work/all.cc"
g++ -std=c++17 -Wall -Werror -I"$prefix/include/npucc" -c "$work/all.cc" -o "$work/all.o"
if nm --undefined-only "$work/all.o" | grep _Z; then
  echo "declared without NPU_C_BEGIN" >&2
  exit 1
fi

step "the pass template builds against the installed headers and links nothing of npucc"
"$cmake" -G Ninja -S "$prefix/share/npucc/pass_template" -B "$work/pass" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
"$cmake" --build "$work/pass" >/dev/null
if nm -D --undefined-only "$work/pass/double_neg.so" | grep -E ' (ir_|pass_|mem_|arena_|diag_|isa_)'; then
  echo "the plugin needs symbols of npucc" >&2
  exit 1
fi
npu_opt() { "$prefix/bin/npu-opt" --load-pass="$work/pass/double_neg.so" "$@"; }
npu_opt --list-passes | grep -q '^double-neg '
npu_opt --passes=double-neg,dce --verify-each "$source/examples/pass_template/test.ir" >"$work/out.ir"
diff "$source/examples/pass_template/expected.ir" "$work/out.ir"
npu_opt --passes='double-neg{limit=0}' "$source/examples/pass_template/test.ir" >"$work/out.ir"
[ "$(grep -c ' neg' "$work/out.ir")" = "$(grep -c ' neg' "$source/examples/pass_template/test.ir")" ]

step "a program linking both libraries: CMake package"
"$cmake" -G Ninja -S "$source/tests/install" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DNPU_CONSUMER=ON >/dev/null
"$cmake" --build "$work/cmake" >/dev/null
"$work/cmake/consumer" "$source/tests/install/relu.mdl" "$work/relu.bin"

step "the same: pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name npucc.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086
"$cc" $flags -o "$work/consumer" "$source/tests/install/consumer.c" $(pkg-config --cflags --libs npucc npurt)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir npurt) "$work/consumer" "$source/tests/install/relu.mdl" "$work/relu.bin"
