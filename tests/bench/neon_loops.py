#!/usr/bin/env python3
"""How busy the NEON inner loops keep the FMA pipes, by llvm-mca: docs/neon-inner-loops.md has the report.

    tests/bench/neon_loops.py [--show]

Compiles src/kernels/weighted/tile.cc and winograd_tile.cc for aarch64 as the build does, takes the innermost loop of each tile out of the
assembly and asks llvm-mca for its cycles, with all loads in the first cache. --show prints the loops too.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER = ["aarch64-linux-gnu-g++", "-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti",
            f"-I{ROOT}", f"-I{ROOT}/include", "-S"]
# What a CPU's model starts in a cycle: fmla of four floats. llvm-mca 14 has the pipes of Cortex-A57 for A76 and X1 (one such fmla a cycle);
# TSV110 has two pipes of 128 bits like a real A76, Exynos M5 three.
CPUS = {"cortex-a76": 1, "cortex-x1": 1, "tsv110": 2, "exynos-m5": 3}
LOOPS = {
    "dense, 5 rows x 16": r"N_NEON10panel_tileILi5ELi1ELb0E",
    "the same, fetching the next block": r"N_NEON10panel_tileILi5ELi1ELb1E",
    "dense, 4 rows x 16": r"N_NEON10panel_tileILi4ELi1ELb0E",
    "Winograd's products, 5 squares x 16": r"N_NEON13multiply_tileILi5ELi1E",
    "depthwise 3x3, 8 outputs, a kernel row": r"N_NEON5slideILi3ELi1ELb0ELi8E",
    "depthwise 3x3 stride 2, 8 outputs, a kernel row": r"N_NEON5slideILi3ELi2ELb0ELi8E",
    "depthwise 5x5, 8 outputs, a kernel row": r"N_NEON5slideILi5ELi1ELb1ELi8E",
    "depthwise 5x5 stride 2, 8 outputs, a kernel row": r"N_NEON5slideILi5ELi2ELb1ELi8E",
}


def assembly(source):
    with tempfile.NamedTemporaryFile(suffix=".s") as out:
        subprocess.run([*COMPILER, "-o", out.name, str(ROOT / "src/kernels/weighted" / source)], check=True)
        return Path(out.name).read_text().splitlines()


def innermost_loop(lines, function):
    start = next(i for i, line in enumerate(lines) if re.match(rf"_ZN.*{function}.*:$", line))
    end = next(i for i in range(start, len(lines)) if lines[i].lstrip().startswith(".size"))
    body = lines[start:end]
    labels = {m[1]: i for i, line in enumerate(body) if (m := re.match(r"(\.L\d+):", line))}
    loops = []
    for i, line in enumerate(body):
        jump = re.match(r"\s+(?:b\.?\w*|cbnz)\s+(?:\w+, )?(\.L\d+)", line)
        if jump and labels.get(jump[1], i) < i:
            loop = [text for text in body[labels[jump[1]] + 1 : i + 1] if re.match(r"\s+[a-z]", text)]
            if any("fmla" in text for text in loop):
                loops.append(loop)
    # A dense loop that fetches has a smaller one behind it, for what is left of the depth.
    fetching = [loop for loop in loops if any("prfm" in text for text in loop)]
    return min(fetching if fetching and "slide" not in function else loops, key=len)


def cycles(loop, cpu, iterations=1000):
    report = subprocess.run(["llvm-mca-14", "-mtriple=aarch64", f"-mcpu={cpu}", f"-iterations={iterations}"], input="\n".join(loop) + "\n",
                            capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / iterations


def main():
    lines = assembly("tile.cc") + assembly("winograd_tile.cc")
    print(f"| loop | fmla | other | {' | '.join(CPUS)} |")
    print("|---|---|---|" + "---|" * len(CPUS))
    for name, function in LOOPS.items():
        loop = innermost_loop(lines, function)
        fmla = sum("fmla" in text for text in loop)
        cells = []
        for cpu, rate in CPUS.items():
            spent = cycles(loop, cpu)
            cells.append(f"{spent:.2f} cycles, {100 * fmla / rate / spent:.1f} %")
        print(f"| {name} | {fmla} | {len(loop) - fmla} | {' | '.join(cells)} |")
        if "--show" in sys.argv:
            print("\n".join(loop), file=sys.stderr)


if __name__ == "__main__":
    main()
