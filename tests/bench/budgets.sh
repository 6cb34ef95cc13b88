#!/usr/bin/env bash
# budgets.sh SLUICE COUNT MODEL.sluice...: COUNT budgets for each model, from the smallest that works to one that keeps all weights, two runs
# each, in a memory cgroup of budget + 4 MiB without swap where that is permitted. Fails where a process was killed or its peak exceeded
# the budget.
set -euo pipefail
here=$(dirname "$0")
sluice=$1
count=$2
shift 2
slack=$((4 << 20))
bad=0

. "$here/budget_points.sh"
mib() { awk -v b="${1:-0}" 'BEGIN { printf "%.2f", b / 1048576 }'; }

printf '%-16s %10s %10s %10s %10s %10s %8s\n' model budget VmHWM cgroup cached 'read' verdict
for model in "$@"; do
  name=$(basename "$model" .sluice)
  least=$("$sluice" plan "$model" --json | field minimum_budget_bytes)
  most=$("$sluice" run "$model" --repeat 2 --json | field peak_rss_bytes)
  most=$((most + (2 << 20)))
  for ((i = 0; i < count; ++i)); do
    budget=$(budget_point "$least" "$most" "$i" "$count")
    log=$(mktemp)
    status=0
    out=$("$here/in_cgroup.sh" $((budget + slack)) "$sluice" run "$model" --budget "$budget" --repeat 2 --json 2>"$log") || status=$?
    group=$(grep -o 'peak=[0-9]*' "$log" | grep -o '[0-9]*' || true)
    failures=$(grep -o 'failures=[0-9]*' "$log" | grep -o '[0-9]*' || true)
    if [ "$status" -eq 77 ]; then
      status=0
      out=$("$sluice" run "$model" --budget "$budget" --repeat 2 --json) || status=$?
      group=
    fi
    rm -f "$log"
    peak=$(field peak_rss_bytes <<<"$out")
    verdict=ok
    [ "${failures:-0}" -gt 0 ] && verdict="held $failures"
    [ "${peak:-0}" -gt "$budget" ] && verdict=OVER
    [ "$status" -ne 0 ] && verdict="status $status"
    case $verdict in ok | held*) ;; *) bad=$((bad + 1)) ;; esac
    printf '%-16s %10s %10s %10s %10s %10s %8s\n' "$name" "$(mib "$budget")" "$(mib "$peak")" "$([ -n "$group" ] && mib "$group" || echo -)" \
      "$(mib "$(field page_cache_bytes <<<"$out")")" "$(mib "$(field bytes_read <<<"$out")")" "$verdict"
  done
done
[ "$bad" -eq 0 ] || { echo "$bad points failed" >&2; exit 1; }
