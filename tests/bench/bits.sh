#!/usr/bin/env bash
# bits.sh SLUICE COUNT MODEL.sluice...: the outputs of each model at COUNT budgets, from the smallest that works to one that keeps all weights,
# on 1, 2, 3 and 16 threads, by both readers, by each policy of the planner and without bands, byte for byte beside those of one thread without
# a budget. The instruction sets of this CPU that fuse multiply and add are compared too; one that does not has to come within the tolerance of
# `run --expect`. Fails where a byte differs.
set -euo pipefail
sluice=$1
count=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

. "$(dirname "$0")/budget_points.sh"

# same NAME WHAT [VARIABLE=VALUE...] -- OPTIONS...: one run, and whether its outputs are those of $work/expected.
same() {
  local name=$1 what=$2 setting=()
  shift 2
  while [ "$1" != -- ]; do
    setting+=("$1")
    shift
  done
  shift
  rm -rf "$work/seen"
  runs=$((runs + 1))
  if ! env "${setting[@]}" "$sluice" run "$@" --output "$work/seen" --json >"$work/json" 2>"$work/errors"; then
    echo "$name, $what: $(head -1 "$work/errors")" >&2
  elif diff -r "$work/expected" "$work/seen" >"$work/difference" 2>&1; then
    return 0
  else
    echo "$name, $what: $(head -1 "$work/difference")" >&2
  fi
  differing=$((differing + 1))
}

# outputs_of MODEL: their names, a line each. Names of files have `_` for what is no letter, digit, point or dash.
outputs_of() { "$sluice" inspect "$1" --json | python3 -c 'import json, sys; [print(o["name"]) for o in json.load(sys.stdin)["outputs"]]'; }

printf '%-20s %8s %10s\n' model runs differing
for model in "$@"; do
  name=$(basename "$model" .sluice)
  runs=0
  differing=0
  rm -rf "$work/expected"
  "$sluice" run "$model" --output "$work/expected" --json >/dev/null
  least=$("$sluice" plan "$model" --json | field minimum_budget_bytes)
  most=$(("$("$sluice" run "$model" --repeat 2 --json | field peak_rss_bytes)" + (2 << 20)))
  for ((i = 0; i < count; ++i)); do
    for threads in 1 2 3 16; do
      smallest=$([ "$threads" -eq 1 ] && echo "$least" || "$sluice" plan "$model" --threads "$threads" --json | field minimum_budget_bytes)
      reader=$([ $(((i + threads) % 2)) -eq 0 ] && echo ring || echo threads)
      # `plan` states what the ring needs; reading threads have stacks.
      [ "$reader" = ring ] || smallest=$((smallest + (512 << 10)))
      budget=$(budget_point "$smallest" "$most" "$i" "$count")
      same "$name" "$budget bytes, $threads threads, $reader" -- "$model" --budget "$budget" --threads "$threads" --reader "$reader"
    done
  done
  for policy in resident on_demand flexnn; do same "$name" "policy $policy" -- "$model" --policy "$policy"; done
  same "$name" "without bands" -- "$model" --partition off
  same "$name" "with the lowest bands" -- "$model" --partition least --max-overhead 50%
  for set in avx512 avx512-novnni avx2-vnni avx2; do
    if SLUICE_ISA=$set "$sluice" inspect "$model" >/dev/null 2>&1; then same "$name" "$set" SLUICE_ISA=$set -- "$model"; fi
  done
  near=()
  while read -r output; do near+=(--expect "$output=$work/expected/${output//[^A-Za-z0-9._-]/_}.npy"); done < <(outputs_of "$model")
  runs=$((runs + 1))
  if ! SLUICE_ISA=scalar "$sluice" run "$model" "${near[@]}" >"$work/json" 2>"$work/errors"; then
    echo "$name, scalar: $(head -1 "$work/errors")" >&2
    differing=$((differing + 1))
  fi
  printf '%-20s %8s %10s\n' "$name" "$runs" "$differing"
  bad=$((bad + differing))
done
[ "$bad" -eq 0 ] || { echo "$bad runs gave other bytes" >&2; exit 1; }
