#!/usr/bin/env bash
# memory_limits.sh PROGRAM ARGUMENT...: runs it in less and less address space, until there is too little for the program to start at all.
# Each run succeeds, or says that memory is out and leaves with 7; none ends by a signal.
set -euo pipefail
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

# within KIBIBYTES COMMAND...: its exit status
within() {
  local limit=$1 status=0
  shift
  (ulimit -c 0 && ulimit -v "$limit" && exec "$@") >/dev/null 2>"$errors" || status=$?
  echo "$status"
}

# Where memory begins to be short; from there on in small steps, so that it runs out at many places.
limit=65536
while [ "$(within "$limit" "$@")" -eq 0 ]; do limit=$((limit - 1024)); done
limit=$((limit + 1024))
succeeded=0
refused=0
while :; do
  status=$(within "$limit" "$@")
  if [ "$status" -eq 0 ]; then
    succeeded=$((succeeded + 1))
  elif [ "$status" -eq 7 ] && grep -q 'out of memory' "$errors"; then
    refused=$((refused + 1))
  else
    text=$(cat "$errors")
    [ "$(within "$limit" "$1" --help)" -ne 0 ] && break
    echo "$* in $limit KiB: status $status: $text" >&2
    exit 1
  fi
  limit=$((limit - 20))
done
echo "$1: $succeeded runs succeeded, $refused were refused"
[ "$succeeded" -gt 0 ] && [ "$refused" -gt 0 ]
