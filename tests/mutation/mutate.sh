#!/bin/bash
# mutate changes one token of code, and nothing else. Usage: mutate.sh MUTATE
set -u
mutate=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

cat >right.c <<'EOF'
#define SIZE (1 + 1)
/* a < b && c */
// x == 1
static const char *s = "a + b", c = '-';
int f(int *p, int n) { return *p - -n; }
EOF
for draw in {0..79}; do
  cp right.c wrong.c
  "$mutate" 1 "$draw" wrong.c >>said || failed=1
  diff right.c wrong.c | grep '^>' >>changed
done
# What can be written wrong is the binary minus, the pointer's star in front of p and s, and the minus sign.
cat >wanted <<'EOF'
> int f(int *p, int n) { return *p + -n; }
> int f(int *p, int n) { return *p - n; }
> int f(int +p, int n) { return *p - -n; }
> static const char +s = "a + b", c = '-';
EOF
sort -u changed | diff wanted - || failed=1
grep -qxF 'wrong.c:5:34: `-` -> `+`' said || { echo "the place is not said" >&2; sort -u said >&2; failed=1; }
exit $failed
