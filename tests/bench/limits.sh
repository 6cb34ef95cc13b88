#!/usr/bin/env bash
# limits.sh SLUICE RATE,RATE,... BUDGET,BUDGET,... MODEL.sluice: repeated runs from an emulated slower disk; the last run of three counts
# unless RUNS says how many. Also the time without a limit on disk or memory, to compare with.
set -euo pipefail
sluice=$1
rates=${2//,/ }
budgets=${3//,/ }
model=$4
runs=${RUNS:-3}
middle() { sed -n "/\"$1\"/,/]/p" | grep -o '[0-9][0-9.e+-]*' | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
field() { grep -o "\"$1\": [0-9]*" | head -1 | grep -o '[0-9]*$'; }

free=$("$sluice" run "$model" --warmup 1 --repeat "$runs" --json | middle latency_ms)
for rate in $rates; do
  for budget in $budgets; do
    out=$("$sluice" run "$model" --budget "$budget" --io-limit "$rate" --warmup 1 --repeat "$runs" --json)
    bytes=$(field bytes_read <<<"$out")
    printf '%-16s %10s %10s %9.1f ms %8.1f MB read %9.1f ms reading, %.2f x unlimited\n' "$(basename "$model" .sluice)" "$rate" "$budget" \
      "$(middle latency_ms <<<"$out")" "$(awk -v b="$bytes" 'BEGIN { print b / 1e6 }')" \
      "$(awk -v b="$bytes" -v r="${rate%MB/s}" 'BEGIN { print b / r / 1e3 }')" \
      "$(awk -v a="$(middle latency_ms <<<"$out")" -v b="$free" 'BEGIN { print a / b }')"
  done
done
