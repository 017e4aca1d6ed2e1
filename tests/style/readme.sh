#!/bin/bash
# Every command line in README.md ("$ command ...") names a program that exists and options it has.
# Usage: readme.sh SOURCE_DIR BUILD_TOOLS_DIR
set -u
cd "$1" || exit 1
tools=$2
failed=0
count=0
while read -r line; do
  set -f
  # shellcheck disable=SC2086
  set -- $line
  set +f
  command=$1
  count=$((count + 1))
  case "$command" in
    npucc | npu-opt | npu-as | npu-objdump | npusim)
      help=$("$tools/$command" --help) || { echo "README.md: $command --help fails" >&2; failed=1; }
      for word in "$@"; do
        case "$word" in
          --*)
            option=${word%%=*}
            grep -qE -- "(^|[ ,])$option([ =[]|$)" <<<"$help" ||
              { echo "README.md: '$line': $command has no option $option" >&2; failed=1; }
            ;;
          examples/*.mdl | examples/*.safetensors)
            [ -e "$word" ] || { echo "README.md: '$line': no file $word" >&2; failed=1; }
            ;;
        esac
      done
      ;;
    */*)
      [ -x "$command" ] || { echo "README.md: '$line': no program $command" >&2; failed=1; }
      ;;
    *)
      command -v "$command" >/dev/null ||
        case "$command" in
          git | sudo | apt-get | ctest | cmake | readelf | export) ;;
          *) echo "README.md: '$line': unknown program $command" >&2; failed=1 ;;
        esac
      ;;
  esac
done < <(sed -n 's/^ *\$ //p' README.md)
[ $count -ge 5 ] || { echo "README.md: only $count commands found" >&2; failed=1; }
exit $failed
