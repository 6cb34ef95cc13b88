#!/usr/bin/env python3
"""Attacks on the programs with files, words and surroundings that nobody means, the same ones for the same seed.

    tests/attack/attack.py --build DIR [--seed N] [--count N] [--onnx FOLDER] [--slow N] [KIND...]

DIR has the built programs and `measured`. Of each KIND (default: all) so many attempts are made; each must end by itself, without a signal,
within ten seconds of processor time and the kind's memory, with a status that docs/errors.md has, and a complaint that names what is
wrong in words that move no cursor. --onnx: a folder with small ONNX files besides those of tests/fuzz/corpus. --slow: a build with
sanitizers, which take N times as long and any amount of memory. A finding ends as a folder in WORK/found with all that it takes.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import kinds  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[2]
MOST_CPU_SECONDS, MOST_WALL_SECONDS = 10, 120  # a busy machine may let one wait
MOST_COMPLAINT = 6000
MOST_READ = 4 << 20  # an endless runner of `detect` writes gigabytes within its second
SANITIZER = re.compile(rb"ERROR: (Address|Leak)Sanitizer|runtime error:|SUMMARY: ")


def both_ends_of(path):
    """What a file says, or where that is too much, how it begins and ends: our own complaint comes last."""
    with open(path, "rb") as file:
        text = file.read(MOST_READ)
        rest = os.fstat(file.fileno()).st_size - len(text)
        if rest > 0:
            file.seek(-min(rest, MOST_READ), os.SEEK_END)
            text += b"\n" + file.read(MOST_READ)
    return text


class Attempt:
    """What a program did."""

    def __init__(self, line, out, err):
        self.status, self.signal, self.ended, self.peak_kib, self.cpu_us, self.wall_us = (int(word) for word in line.split())
        self.out, self.err = out, err


class Attacker:
    """Runs attempts in a folder, judges them, counts."""

    def __init__(self, build, work, slow):
        self.build, self.work, self.slow = build, work, slow
        self.corpus = SOURCES / "tests" / "fuzz" / "corpus"
        self.messages = collections.Counter()
        self.begin("")

    def begin(self, kind):
        self.kind, self.attempts, self.accepted, self.peak, self.cpu, self.written = kind, 0, 0, 0, 0, 0
        self.findings = getattr(self, "findings", [])

    def program(self, name):
        return str(self.build / name)

    def path(self, name):
        return self.work / name

    def run(self, words, addresses_kib=0, redirect="", limit="", environment=None):
        """Runs words in the folder; `redirect` is what a shell puts behind them, such as '2>&-', `limit` what its ulimit is told."""
        if self.slow > 1:
            addresses_kib = 0
        words = [str(word) for word in words]
        if redirect or limit:
            words = ["/bin/sh", "-c", f'ulimit {limit or "-c 0"} && exec "$@" {redirect}', "sh"] + words
        result, out, err = self.path("result"), self.path("stdout"), self.path("stderr")
        env = {**os.environ, "SLUICE_PROFILE": "none", "ASAN_OPTIONS": "allocator_may_return_null=1", **(environment or {})}
        command = [self.program("measured"), result, str(MOST_WALL_SECONDS * self.slow), str(addresses_kib)] + words
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            subprocess.run(command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=env, check=True)
        return Attempt(result.read_text(), both_ends_of(out), both_ends_of(err))

    def judge(self, words, names=(), most_kib=65536, files=(), **how):
        """One attempt and what is wrong with it. `names`: of which a complaint has one; `files`: what makes the attempt again."""
        attempt = self.run(words, **how)
        if attempt.ended and attempt.cpu_us < MOST_CPU_SECONDS * 1e6:  # one that hangs does so again; a machine that was stopped goes on
            attempt = self.run(words, **how)
        self.attempts += 1
        self.accepted += attempt.status == 0 and attempt.signal == 0
        self.peak, self.cpu = max(self.peak, attempt.peak_kib), max(self.cpu, attempt.cpu_us)
        wrong = self.wrong_with(attempt, names, most_kib, quiet="2>" in how.get("redirect", ""))
        if wrong:
            self.find(wrong, words, attempt, files)
        if attempt.status != 0:
            text = attempt.err.decode("utf-8", "replace").strip().split("\n")[0]
            self.messages[self.kind + ": " + re.sub(r"[0-9]+", "#", re.sub(r"'[^']*'", "'...'", text))[:220]] += 1
        return attempt

    def wrong_with(self, attempt, names, most_kib, quiet):
        if attempt.ended or attempt.cpu_us > MOST_CPU_SECONDS * 1e6 * self.slow:
            return f"does not end: {attempt.cpu_us / 1e6:.1f} s of CPU, {attempt.wall_us / 1e6:.1f} s"
        if attempt.signal:
            return f"died of signal {attempt.signal}"
        if SANITIZER.search(attempt.err):
            return "a sanitizer's report"
        if self.slow == 1 and attempt.peak_kib > most_kib:
            return f"{attempt.peak_kib} KiB of memory, at most {most_kib}"
        if attempt.status not in (0, 1, 2, 3, 4, 5, 6, 8):
            return f"status {attempt.status}"
        if attempt.status == 0 or quiet:
            return None
        # What a program that ours starts says on stderr is its own.
        text = "\n".join(line for line in attempt.err.decode("utf-8", "replace").split("\n") if re.match(r"sluice(-[a-z]+)?: ", line))
        if not text:
            return "a complaint that does not say whose it is"
        if len(text) > MOST_COMPLAINT or re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text):
            return "a complaint that is too long or moves the cursor"
        if names and not any(name in text for name in names):
            return "a complaint that names nothing of " + ", ".join(names)
        return None

    def find(self, wrong, words, attempt, files):
        folder = self.work / "found" / f"{self.kind}-{len(self.findings)}"
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(self.path(file), folder / pathlib.Path(file).name)
        text = f"{wrong}\n{' '.join(map(repr, map(str, words)))}\n{attempt.err.decode('utf-8', 'replace')[:MOST_COMPLAINT]}"
        (folder / "what.txt").write_text(text, errors="replace")
        self.findings.append(f"{folder.name}: {text.splitlines()[0]}: {' '.join(map(str, words))[:200]}")
        print("FINDING", self.findings[-1], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--onnx", type=pathlib.Path)
    parser.add_argument("--slow", type=int, default=1)
    parser.add_argument("kinds", nargs="*", choices=[[], *kinds.ALL], default=[])
    line = parser.parse_args()
    work = (line.work or line.build / "attack").resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    attacker = Attacker(line.build.resolve(), work, line.slow)
    attacker.onnx_folder = line.onnx
    print(f"{'kind':12} {'seed':>6} {'attempts':>9} {'accepted':>9} {'most KiB':>9} {'most CPU ms':>12} {'most written':>13}")
    for kind in line.kinds or kinds.ALL:
        attacker.begin(kind)
        kinds.ALL[kind](attacker, random.Random(f"{kind} {line.seed}"), line.count)
        print(
            f"{kind:12} {line.seed:>6} {attacker.attempts:>9} {attacker.accepted:>9} {attacker.peak:>9} {attacker.cpu / 1000:>12.0f}"
            f" {attacker.written:>13}",
            flush=True,
        )
    (work / "messages.txt").write_text("".join(f"{n:6} {text}\n" for text, n in sorted(attacker.messages.items())), errors="replace")
    if attacker.findings:
        print(f"{len(attacker.findings)} findings, in {work}/found")
    return 1 if attacker.findings else 0


if __name__ == "__main__":
    sys.exit(main())
