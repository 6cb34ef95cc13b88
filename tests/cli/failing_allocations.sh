#!/usr/bin/env bash
# failing_allocations.sh LIBRARY COUNT PROGRAM ARGUMENT...: runs it COUNT times; in the n-th run its n-th request for memory fails
# (failing_malloc.cc). Each run succeeds, or says that memory is out and leaves with 7; none ends by a signal.
set -euo pipefail
library=$1 count=$2
shift 2
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
ulimit -c 0
succeeded=0 refused=0
for ((n = 1; n <= count; ++n)); do
  status=0
  SLUICE_FAIL_ALLOCATION=$n LD_PRELOAD=$library "$@" >/dev/null 2>"$errors" || status=$?
  if [ "$status" -eq 0 ]; then
    succeeded=$((succeeded + 1))
  elif [ "$status" -eq 7 ] && grep -q 'out of memory' "$errors"; then
    refused=$((refused + 1))
  else
    echo "$*: without allocation $n: status $status: $(cat "$errors")" >&2
    exit 1
  fi
done
echo "$1 $2: of $count runs $succeeded succeeded, $refused were refused"
[ "$refused" -gt 0 ]
