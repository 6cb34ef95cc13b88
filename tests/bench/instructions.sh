#!/usr/bin/env bash
# Instructions an element of each case of sluice-bench-instructions beside its limit. Fails where one is over it.
#
#     tests/bench/instructions.sh PROGRAM [NAME ...]
set -euo pipefail
program=$1
shift
if ! command -v valgrind > /dev/null; then
  echo 'SKIPPED: no valgrind here'
  exit 0
fi
printf '%-22s %10s %10s %8s\n' case elements counted limit
over=0
while read -r name elements limit; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  counted=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no --toggle-collect=sluice_measured "$program" "$name" 2>&1 |
    sed -n 's/.*Collected : *\([0-9]*\).*/\1/p')
  if [ -z "$counted" ]; then
    echo "$name: valgrind counted nothing" >&2
    exit 1
  fi
  if ! awk -v name="$name" -v elements="$elements" -v counted="$counted" -v limit="$limit" 'BEGIN {
    each = counted / elements
    over = (each > limit + 0)
    printf "%-22s %10d %10.2f %8.2f%s\n", name, elements, each, limit, (over ? "  OVER" : "")
    exit over
  }'; then over=$((over + 1)); fi
done < <("$program")
[ "$over" -eq 0 ] || { echo "$over over their limits" >&2; exit 1; }
