#!/usr/bin/env bash
# in_cgroup.sh BYTES COMMAND...: runs the command in a memory cgroup of its own without swap, and says on stderr what it came to:
#     cgroup peak=BYTES failures=COUNT
# failures: how often the limit was hit (version 1: each time; version 2: kills alone count as failures). Status 77: not permitted here.
set -uo pipefail
limit=$1
shift
name=sluice-bench-$$
if [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/$name
  mkdir "$group" 2>/dev/null || exit 77
  trap 'rmdir "$group"' EXIT
  echo "$limit" >"$group/memory.limit_in_bytes" || exit 77
  echo 0 >"$group/memory.swappiness" 2>/dev/null
  figures() { echo "cgroup peak=$(cat "$group/memory.max_usage_in_bytes") failures=$(cat "$group/memory.failcnt")" >&2; }
elif [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/$name
  mkdir "$group" 2>/dev/null || exit 77
  trap 'rmdir "$group"' EXIT
  { echo "$limit" >"$group/memory.max" && echo 0 >"$group/memory.swap.max"; } 2>/dev/null || exit 77
  figures() {
    echo "cgroup peak=$(cat "$group/memory.peak" 2>/dev/null || echo 0) failures=$(awk '$1 == "oom_kill" { print $2 }' "$group/memory.events")" >&2
  }
else
  exit 77
fi
bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
status=$?
figures
exit $status
