#!/usr/bin/env bash
# sets.sh SLUICE POINTS CROSS MODEL.sluice...: the outputs of each model by each instruction set of this CPU, and by a cross build for 64-bit ARM
# under qemu (CROSS, its folder; empty: none) on a CPU with SDOT and on one without, at POINTS budgets of Sluice's own bytes, from the smallest
# that works to one that keeps all weights, on 1 and 2 threads: byte for byte those of the first run. For models of integers, whose scalar
# kernels give the same bits as the others. Fails where a byte differs, and where nothing was compared.
set -euo pipefail
sluice=$1
points=$2
cross=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

. "$(dirname "$0")/budget_points.sh"

# run_of SET: prints the command that runs `sluice` with that instruction set, a word a line; fails where the CPU or the build lacks it.
run_of() {
  case "$1" in
    arm-*)
      [ -n "$cross" ] && command -v qemu-aarch64 >/dev/null || return 1
      printf '%s\n' qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu "$([ "$1" = arm-dot ] && echo max,sve=off || echo cortex-a53)" "$cross/sluice"
      ;;
    *) printf '%s\n' env "SLUICE_ISA=$1" "$sluice" ;;
  esac
}

printf '%-28s %-16s %6s %10s %12s\n' model set runs differing 'budgets, MiB'
for model in "$@"; do
  name=$(basename "$model" .sluice)
  rm -rf "$work/expected"
  "$sluice" run "$model" --budget unlimited --output "$work/expected" --json >/dev/null
  for set in avx512 avx512-novnni avx2-vnni avx2 scalar arm-dot arm-plain; do
    mapfile -t run < <(run_of "$set")
    if [ ${#run[@]} -eq 0 ] || ! least=$("${run[@]}" plan "$model" --threads 2 --scope library --json 2>"$work/errors" | field minimum_budget_bytes) || [ -z "$least" ]; then
      printf '%-28s %-16s skipped: %s\n' "$name" "$set" "$(head -1 "$work/errors" 2>/dev/null)"
      continue
    fi
    runs=0 differing=0
    most=$((least + $(stat -c %s "$model")))
    for ((i = 0; i < points; ++i)); do
      for threads in 1 2; do
        rm -rf "$work/seen"
        runs=$((runs + 1))
        if ! "${run[@]}" run "$model" --budget "$(budget_point "$least" "$most" "$i" "$points")" --scope library --threads "$threads" \
          --output "$work/seen" --json >/dev/null 2>"$work/errors"; then
          echo "$name, $set, budget $i, $threads threads: $(head -1 "$work/errors")" >&2
          differing=$((differing + 1))
        elif ! diff -r "$work/expected" "$work/seen" >"$work/difference" 2>&1; then
          echo "$name, $set, budget $i, $threads threads: $(head -1 "$work/difference")" >&2
          differing=$((differing + 1))
        fi
      done
    done
    printf '%-28s %-16s %6s %10s %12s\n' "$name" "$set" "$runs" "$differing" "$((least >> 20)) to $((most >> 20))"
    bad=$((bad + differing))
    compared=1
  done
done
[ "$bad" -eq 0 ] || { echo "$bad runs failed or gave other bytes" >&2; exit 1; }
[ -n "${compared:-}" ] || { echo "nothing was compared" >&2; exit 1; }
