"""The kinds of attack: each takes the attacker, random numbers and how many attempts to make."""
import json
import os
import pathlib
import re
import shutil
import struct
import zipfile
import zlib

import mutate

SMALL_FILE, SMALL_MEMORY_KIB, SMALL_OUTPUT = 1024, 16384, 4 << 20
ADDRESSES_KIB = 1 << 20  # what is taken in earnest is judged by the peak


def make(attacker, words, **how):
    """What an attack begins with; it must succeed."""
    attempt = attacker.run(words, **how)
    if attempt.status != 0 or attempt.signal != 0:
        raise SystemExit(f"{words}: status {attempt.status}: {attempt.err.decode()}")
    return attempt


def small_model(attacker, name="m.sluice"):
    """A model that streams at its least budget, and its ONNX file m.onnx."""
    shutil.copyfile(attacker.corpus / "onnx" / "separable_residual.onnx", attacker.path("m.onnx"))
    make(attacker, [attacker.program("sluice-convert"), "m.onnx", "-o", name, "--quiet"])
    return name


def budgets_of(attacker, model):
    plan = json.loads(make(attacker, [attacker.program("sluice"), "plan", model, "--scope", "library", "--json"]).out)
    return plan["minimum_budget_bytes"]


# --- ONNX files of at most a KiB


def onnx(attacker, random, count):
    paths = sorted((attacker.corpus / "onnx").glob("*.onnx"))
    if attacker.onnx_folder:
        paths += sorted(attacker.onnx_folder.rglob("*.onnx"))
    seeds = [path.read_bytes() for path in paths if path.stat().st_size <= SMALL_FILE]
    strings = [string for seed in seeds for string in mutate.strings_of(seed, [])]
    for n in range(count):
        data = mutate.of_onnx(random, seeds[n % len(seeds)], strings, SMALL_FILE)
        attacker.path("x.onnx").write_bytes(data)
        made = attacker.path("x.sluice")
        made.unlink(missing_ok=True)
        attempt = attacker.judge([attacker.program("sluice-convert"), "x.onnx", "-o", "x.sluice", "--quiet"], ("x.onnx", "--"), SMALL_MEMORY_KIB, ("x.onnx",))
        written = made.stat().st_size if made.exists() else 0
        attacker.written = max(attacker.written, written)
        if written > SMALL_OUTPUT or (written > 0) != (attempt.status == 0):
            attacker.find(f"{written} bytes were written with status {attempt.status}", ["convert"], attempt, ("x.onnx",))


# --- Plans


def plans(attacker, random, count):
    model, hash64 = small_model(attacker), mutate.xxh3_64()
    sluice, least = attacker.program("sluice"), budgets_of(attacker, "m.sluice")
    run = [sluice, "run", model, "--scope", "library", "--output"]
    seeds = []
    for i, words in enumerate(([], ["--repeat"], ["--budget", str(least)], ["--budget", str(least), "--repeat"], ["--budget", str(least + 65536)], ["--threads", "2"])):
        make(attacker, [sluice, "plan", model, "--scope", "library", "--save", f"base{i}.plan"] + words)
        seeds.append(attacker.path(f"base{i}.plan").read_bytes())
    make(attacker, run + ["wanted"])
    wanted = outputs_in(attacker, "wanted")
    for n in range(count):
        attacker.path("x.plan").write_bytes(mutate.of_plan(random, seeds[n % len(seeds)], hash64))
        shutil.rmtree(attacker.path("got"), ignore_errors=True)
        attempt = attacker.judge(run + ["got", "--plan", "x.plan"], ("x.plan", "--"), files=("x.plan", "m.onnx"), addresses_kib=ADDRESSES_KIB)
        if attempt.status == 0 and outputs_in(attacker, "got") != wanted:
            attacker.find("other outputs", run, attempt, ("x.plan", "m.onnx"))


def outputs_in(attacker, folder):
    return {path.name: path.read_bytes() for path in attacker.path(folder).iterdir()}


# --- JSON: workloads and device profiles

# Times that are long and meant: to serve for a day is no hang.
LONG = ("running_time_ms", "period_ms", "slo_us", "slo_scale", "profile_num_runs", "profile_warmup_runs", "batch_size")

SERVE_MEMORY_KIB = 262144  # a thousand models on two processors take 165 MiB

WORKLOAD = {
    "models": [{"graph": "m.sluice", "period_ms": 10, "batch_size": 2, "slo_us": 100000, "worker_id": 0}, {"graph": "m.sluice", "period_ms": 20, "slo_scale": 2.0}],
    "schedulers": ["least_slack_time_first"],
    "execution_mode": "periodic",
    "running_time_ms": 20,
    "cpu_masks": "ALL",
    "num_threads": 1,
    "minimum_subgraph_size": 7,
    "subgraph_preparation_type": "merge_unit_subgraph",
    "planner_cpu_masks": "PRIMARY",
    "profile_online": True,
    "profile_warmup_runs": 1,
    "profile_num_runs": 2,
    "schedule_window_size": 10,
    "log_path": "log.json",
    "workers": [{"device": "CPU", "num_threads": 1, "cpu_masks": "BIG"}, {"device": "CPU", "cpu_masks": "LITTLE"}],
}
REQUESTS = [{"at_ms": 5, "model": 0}, {"at_ms": 1, "model": 1}, {"at_ms": 1e6, "model": 0}]


def serve(attacker, random, count):
    small_model(attacker)
    recorded = {**WORKLOAD, "execution_mode": "workload", "workload": "requests.json"}
    stream = {**WORKLOAD, "execution_mode": "stream"}

    def is_short(path, value):
        return path[-1] not in LONG or not isinstance(value, (int, float)) or value < 30

    for n in range(count):
        base = (WORKLOAD, recorded, stream)[n % 3]
        config, requests = json.dumps(base), json.dumps(REQUESTS).encode()
        if n % 6 == 1:
            requests, config = mutate.of_json(random, requests.decode()), config.encode()
        else:
            config = mutate.of_json(random, config, is_short, lasting=("running_time_ms",))  # which is a minute by default
        attacker.path("x.json").write_bytes(config)
        attacker.path("requests.json").write_bytes(requests)
        words = [attacker.program("sluice"), "serve", "x.json", "--json", "--scope", "library"]
        # A file that the workload names is told of by its own name, which may be a changed one of a file that is there.
        names = [name + ": " for name in re.findall(r'"(?:graph|workload|log_path)":"([^"]+)"', config.decode("utf-8", "replace"))]
        names += ["x.json", "requests.json", "m.sluice", "file cannot be opened", "place to write to"]
        attacker.judge(words, names, SERVE_MEMORY_KIB, files=("x.json", "requests.json", "m.onnx"))


def profiles(attacker, random, count):
    small_model(attacker)
    sluice = attacker.program("sluice")
    text = (pathlib.Path(__file__).parent / "profile.json").read_text()
    uses = (
        ["plan", "m.sluice"],
        ["plan", "m.sluice", "--sweep"],
        ["plan", "m.sluice", "--explain", "--threads", "2"],
        ["predict", "m.sluice"],
        ["predict", "m.onnx", "--json"],
        ["run", "m.sluice"],
        ["serve", "c.json"],
    )
    attacker.path("c.json").write_text(json.dumps({**WORKLOAD, "log_path": "log.json"}))
    for n in range(count):
        attacker.path("p.json").write_bytes(mutate.of_json(random, text))
        use = uses[n % len(uses)]
        option = [] if use[0] == "serve" else ["--profile", "p.json"]
        environment = {"SLUICE_PROFILE": "p.json"} if use[0] == "serve" else None
        attacker.judge([sluice, *use, "--scope", "library", *option] if use[0] != "predict" else [sluice, *use, *option], ("p.json",), files=("p.json", "m.onnx"), environment=environment)


# --- Arrays, pictures, keys


def npy(shape, values, descr="<f4", fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1") + values


HOSTILE_SHAPES = ("()", "(0,)", "(-1,)", "(1", "(4294967296, 4294967296)", "(9223372036854775807,)", "(1,)*9", "(1e9,)", "(1, 2, 3, 4, 5, 6, 7, 8, 9)", "('a',)", "None", "(True,)", "(" * 300 + ")" * 300, "(18446744073709551617,)")
HOSTILE_TYPES = ("<f4", ">f4", "|u1", "<f8", "<i8", "<c8", "|O", "<U5", "V3", "<f0", "<f99999999999", "", "f4'", "|b1", "<f2")


def arrays(attacker, random, count):
    small_model(attacker)
    sluice = attacker.program("sluice")
    make(attacker, [sluice, "run", "m.sluice", "--scope", "library", "--output", "out"])
    inputs = json.loads(make(attacker, [sluice, "inspect", "m.sluice", "--json"]).out)["inputs"]
    shape = tuple(inputs[0]["shape"])
    elements = 1
    for extent in shape:
        elements *= extent
    good = npy(shape, struct.pack(f"<{elements}f", *([0.25] * elements)))
    packed = [path.read_bytes() for path in sorted((attacker.corpus / "arrays").glob("*.pb"))]
    result = next(attacker.path("out").glob("*.npy"))
    for n in range(count):
        kind = n % 5
        name, data = "x.npy", mutate.of_bytes(random, good)
        if kind == 1:
            data = npy(random.choice((str(shape),) + HOSTILE_SHAPES), random.choice((good[-4 * elements :], b"", b"\0" * 64)), random.choice(HOSTILE_TYPES), random.choice((True, False, 7)))
        elif kind == 2:
            name, data = "x.npz", mutate.of_bytes(random, archive(attacker, random, {inputs[0]["name"] + ".npy": good, "other.npy": good[:200]}))
        elif kind == 3:
            name, data = "x.pb", mutate.of_message(random, random.choice(packed), [])
        elif kind == 4:
            name, data = "x.npy", mutate.of_bytes(random, result.read_bytes())
        attacker.path(name).write_bytes(data)
        words = [sluice, "run", "m.sluice", "--scope", "library", *(["--expect"] if kind == 4 else ["--input"]), name]
        if kind == 3 and n % 2:
            words = [attacker.program("sluice-convert"), "m.onnx", "-o", "v.sluice", "--quiet", "--value", inputs[0]["name"] + "=" + name]
        attacker.judge(words, (name, "--", inputs[0]["name"]), files=(name, "m.onnx"), addresses_kib=ADDRESSES_KIB)


def archive(attacker, random, members):
    path = attacker.path("base.npz")
    with zipfile.ZipFile(path, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as out:
        for name, data in members.items():
            out.writestr(zipfile.ZipInfo(name), data)
        if random.random() < 0.2:  # much in little
            out.writestr(zipfile.ZipInfo("zeros.npy"), npy("(2000000,)", bytes(8_000_000)), zipfile.ZIP_DEFLATED)
    return path.read_bytes()


def picture_model():
    """The ONNX file of a model that takes pictures of 16 by 16 and is next to nothing otherwise."""

    def text(number, value):
        return [number, 2, value.encode()]

    def message(number, *fields):
        return [number, 2, mutate.message_of(fields)]

    def port(number, name):
        shape = message(2, *(message(1, [1, 0, extent]) for extent in (1, 3, 16, 16)))
        return message(number, text(1, name), message(2, message(1, [1, 0, 1], shape)))

    graph = message(7, message(1, text(1, "x"), text(2, "y"), text(4, "Relu")), text(2, "g"), port(11, "x"), port(12, "y"))
    return mutate.message_of(([1, 0, 8], message(8, [2, 0, 13]), graph))


def sound_pngs(random):
    """Grey, colour, palette and alpha, of 8 and 16 bits."""
    made = []
    for colour, channels, depth in ((0, 1, 8), (2, 3, 8), (3, 1, 8), (4, 2, 8), (6, 4, 8), (2, 3, 16), (0, 1, 1)):
        row = -(-16 * channels * depth // 8)
        lines = b"".join(bytes([random.randrange(5)]) + bytes(random.randrange(256) & (7 if colour == 3 else 255) for _ in range(row)) for _ in range(16))
        chunks = [[b"IHDR", struct.pack(">IIBBBBB", 16, 16, depth, colour, 0, 0, 0)], [b"IDAT", zlib.compress(lines)], [b"IEND", b""]]
        if colour == 3:
            chunks.insert(1, [b"PLTE", bytes(range(24))])
        made.append(mutate.png_of(chunks))
    return made


def pictures(attacker, random, count):
    sluice = attacker.program("sluice")
    attacker.path("m.onnx").write_bytes(picture_model())
    make(attacker, [attacker.program("sluice-convert"), "m.onnx", "-o", "m.sluice", "--quiet", "--preprocess", "none"])
    seeds = [(".png", data) for data in sound_pngs(random)] * 3
    folders = [attacker.corpus / "arrays"] + ([attacker.onnx_folder] if attacker.onnx_folder else [])
    for folder in folders:
        paths = sorted(folder.rglob("*.png")) + sorted(folder.rglob("*.jpg"))
        seeds += [(path.suffix, path.read_bytes()) for path in paths if path.stat().st_size < 200_000]
    for n in range(count):
        suffix, data = seeds[n % len(seeds)]
        data = mutate.of_png(random, data) if suffix == ".png" else mutate.of_bytes(random, data)
        name = "x" + (suffix if random.random() < 0.9 else random.choice((".png", ".jpg", ".jpeg", ".bmp", ".gif")))
        attacker.path(name).write_bytes(data)
        words = [sluice, "run", "m.sluice", "--scope", "library", "--input", name]
        attacker.judge(words, (name, "--"), files=(name, "m.onnx"), addresses_kib=ADDRESSES_KIB)


def keys(attacker, random, count):
    small_model(attacker)
    sluice, convert = attacker.program("sluice"), attacker.program("sluice-convert")
    attacker.path("good.key").write_bytes(bytes(range(32)))
    made = attacker.run([convert, "m.onnx", "-o", "e.sluice", "--quiet", "--encrypt", "good.key"])
    if made.status != 0:
        print("keys: skipped:", made.err.decode().strip())
        return
    model, uses = attacker.path("e.sluice").read_bytes(), (["run"], ["inspect"], ["plan"], ["verify"], ["predict"])
    digits = "".join(f"{byte:02x}" for byte in range(32))
    for n in range(count):
        words, names, how = [sluice, *uses[n % len(uses)]], ("key", "x.sluice", "e.sluice", "at file offset"), {}
        kind = n % 4
        if kind == 0:  # the right key, and a file that somebody changed
            attacker.path("x.sluice").write_bytes(mutate.of_bytes(random, model))
            words += ["x.sluice", "--key", "good.key"]
        elif kind == 1:
            attacker.path("x.key").write_bytes(bytes(random.randrange(256) for _ in range(random.choice((0, 1, 16, 31, 32, 33, 64, 5000)))))
            words += ["e.sluice", "--key", "x.key"]
        elif kind == 2:
            words += ["e.sluice", "--key", "fd:" + random.choice(("", "0", "1", "2", "7", "-1", "99999", "4294967296", "x", "3x", "0x3", " 3", "3"))]
            how["redirect"] = random.choice(("3</dev/null", "3</dev/zero", "3<.", "3<&-", "3<m.onnx", "3>/dev/null", "3<good.key"))
        else:
            value = random.choice((digits, digits[:-1], digits + "0", digits[:-1] + "g", "", " " + digits[1:], digits.upper(), "\x1b[31m" * 16, "0x" + digits[2:]))
            words += ["e.sluice", "--key", "env:" + random.choice(("THE_KEY", "THE_KEY", "THE_KEY", "", "NOT_THERE", "=", "PATH"))]
            how["environment"] = {"THE_KEY": value}
        if words[1] == "run":
            words += ["--scope", "library"]
        attempt = attacker.judge(words, names, files=("e.sluice", "m.onnx"), addresses_kib=ADDRESSES_KIB, **how)
        if digits[:40].encode() in attempt.err.lower() + attempt.out.lower():
            attacker.find("the key is told", words, attempt, ())


# --- Surroundings

RUNNERS = (
    "cat >/dev/null",  # silent
    "sleep 600",
    "exec yes 1",  # answers without being asked, a thousand million lines
    "tr '\\0' x </dev/zero",  # a line without end
    "cat /dev/zero",
    "cat /dev/urandom",
    "true",
    "false",
    "exit 127",
    "no-such-program-anywhere",
    "kill -9 $$",
    "kill -SEGV $$",
    "kill -STOP $$",
    "read p; echo 1; exit 3",
    "read p; printf 1",  # half a line, and gone
    "read p; printf 1; sleep 600",
    "exec 1>&-; sleep 600",
    "exec 0<&-; yes 1",
    "trap '' TERM PIPE HUP INT; while read p; do echo 1; done; sleep 600",
    "sleep 600 & while read p; do echo 1; done",  # leaves a child with the pipe
    "(trap '' TERM; sleep 600) & wait",
    "while read p; do echo 1 2; done",
    "while read p; do echo; done",
    "while read p; do rm -f \"$p\"; echo 1; done",
    "while read p; do : >\"$p\"; echo 1; done",
    "while read p; do rm -rf \"$(dirname \"$p\")\"; echo 1; done",
    "yes 1 >&2",
    "while read p; do echo 1; printf 'x\\033[2J%.0s' 1 2 3 >&2; done",
    "",
    " ",
    "'",
    "(",
)
ANSWERS = ("-1", "0", "-0", "nan", "NaN", "inf", "-inf", "1e309", "1e308", "1e-320", "0x10", "1,5", "abc", "1ms", "٣", "1\\0", "\\033[31m1", "+1", ".5", "9" * 400)


def detect(attacker, random, count):
    runners = list(RUNNERS) + ["while read p; do printf '" + answer + "\\n'; done" for answer in ANSWERS]
    for n in range(count):
        runner = runners[n] if n < len(runners) else random.choice(runners[:3]) if n % 7 == 0 else "i=0; while read p; do i=$((i+1)); [ $i -lt %d ] || { %s; }; echo %s; done" % (
            random.randint(1, 30), random.choice([r for r in RUNNERS if r.strip() and r not in ("'", "(")]), random.choice(("1", "0.5", "3", *ANSWERS[:8])))
        words = [attacker.program("sluice-detect"), "--runner", runner, "--answer", "1", "--seconds", "1", "--rounds", "8", "--operators", "conv,relu"]
        attacker.judge(words, ("runner", "pipe", "cannot be written", "no file can be made"))


def odd_targets(attacker):
    """Where an output may be told to go, each with what makes it."""
    folder = attacker.path("odd")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "folder").mkdir(parents=True)
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("x")
    (folder / "file").write_text("x")
    os.mkfifo(folder / "fifo")
    for name, to in (("dangling", "nowhere"), ("self", "self"), ("outside", "absent/x"), ("to_folder", "folder"), ("to_null", "/dev/null"), ("to_full", "/dev/full")):
        (folder / name).symlink_to(to)
    names = ["folder", "folder/", "full", "fifo", "dangling", "self", "outside", "to_folder", "to_null", "to_full", "file/x", "absent/x", "absent/../x", ".", "..", "\x1b[31m\n", "%s%n", "a" * 255, "a" * 256, "a/" * 3000]
    return ["odd/" + name for name in names] + ["/dev/full", "/dev/null", "/dev/tty", "/dev/stdin", "/proc/version", "/proc/self/mem", "/proc/self/fd/99", "/sys/kernel/x", "/", "", "m.sluice", "m.onnx", "x" * 70000]


def targets(attacker, random, count):
    sluice, convert, emit = (attacker.program(name) for name in ("sluice", "sluice-convert", "sluice-emit"))
    writers = (
        [sluice, "run", "m.sluice", "--scope", "library", "--trace"],
        [sluice, "run", "m.sluice", "--scope", "library", "--output"],
        [sluice, "report", "m.sluice", "--scope", "library", "-o"],
        [sluice, "report", "m.sluice", "--scope", "library", "--no-run", "-o"],
        [sluice, "plan", "m.sluice", "--save"],
        [sluice, "plan", "m.sluice", "--svg"],
        [sluice, "trim", "m.sluice", "-o"],
        [sluice, "serve", "c.json", "--scope", "library", "--trace"],
        [convert, "m.onnx", "--quiet", "-o"],
        [emit, "m.sluice", "--ram", "1MiB", "-o"],
        [sluice, "quantize", "m.onnx", "--data", "data", "-o"],
    )
    small_model(attacker)
    make(attacker, [sluice, "run", "m.sluice", "--scope", "library", "--output", "data"])
    attacker.path("c.json").write_text(json.dumps(WORKLOAD))
    model, source = attacker.path("m.sluice").read_bytes(), attacker.path("m.onnx").read_bytes()
    ends = ("", "", "", "", "<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", ">/dev/full")
    for n in range(count):
        places = odd_targets(attacker)
        writer = writers[n % len(writers)]
        place = places[n // len(writers) % len(places)] if n < len(writers) * len(places) else random.choice(places)
        redirect = random.choice(ends)
        if n >= len(writers) * len(places) or random.random() < 0.2:
            place = random.choice((place, "fresh"))
        attempt = attacker.judge(writer + [place], redirect=redirect)
        for name, was in (("m.sluice", model), ("m.onnx", source)):
            if attacker.path(name).read_bytes() != was:
                if place not in (name,):
                    attacker.find(f"{name} is another", writer + [place, redirect], attempt, ())
                attacker.path(name).write_bytes(was)


def limits(attacker, random, count):
    """Few descriptors, and files that may not grow: each command says so, and nothing is left half written."""
    sluice, convert, emit = (attacker.program(name) for name in ("sluice", "sluice-convert", "sluice-emit"))
    small_model(attacker)
    make(attacker, [sluice, "run", "m.sluice", "--scope", "library", "--output", "data"])
    attacker.path("c.json").write_text(json.dumps(WORKLOAD))
    commands = (
        ([convert, "m.onnx", "-o", "new", "--quiet"], "new"),
        ([sluice, "convert", "m.onnx", "-o", "new", "--quiet"], "new"),
        ([sluice, "plan", "m.sluice", "--save", "new"], "new"),
        ([sluice, "plan", "m.sluice", "--svg", "new"], "new"),
        ([sluice, "run", "m.sluice", "--scope", "library", "--trace", "new"], "new"),
        ([sluice, "run", "m.sluice", "--scope", "library", "--reader", "ring"], None),
        ([sluice, "run", "m.sluice", "--scope", "library", "--reader", "threads", "--threads", "4"], None),
        ([sluice, "run", "m.sluice", "--scope", "library", "--input", "data/input.npy"], None),
        ([sluice, "report", "m.sluice", "--scope", "library", "-o", "new"], "new"),
        ([sluice, "trim", "m.sluice", "-o", "new"], "new"),
        ([sluice, "serve", "c.json", "--scope", "library", "--trace", "new"], "new"),
        ([sluice, "quantize", "m.onnx", "--data", "data", "-o", "new"], "new"),
        ([emit, "m.sluice", "--ram", "1MiB", "-o", "emitted"], None),
        ([sluice, "bench", "m.sluice", "--repeat", "1", "--warmup", "0"], None),
        ([sluice, "inspect", "m.sluice"], None),
        ([sluice, "verify", "m.sluice"], None),
        ([sluice, "predict", "m.onnx"], None),
    )
    data = next(attacker.path("data").glob("*.npy"))
    shutil.copyfile(data, attacker.path("data") / "input.npy")
    for n in range(count):
        words, made = commands[n % len(commands)]
        limit = random.choice((f"-f {random.choice((2, 4, 8, 16, 32))}", f"-n {random.randint(12, 32)}"))
        path = attacker.path(made or "new")
        path.unlink(missing_ok=True)
        redirect = random.choice(("", "", ">&-", "<&-"))
        attempt = attacker.judge(words, limit=limit, redirect=redirect)
        # Where stdout is closed, what was to be printed is what fails, after the file is whole.
        if made and redirect != ">&-" and attempt.status != 0 and path.exists():
            attacker.find(f"{path.stat().st_size} bytes of {made} are left with status {attempt.status}", words + [limit], attempt, ())


ALL = {"onnx": onnx, "plans": plans, "serve": serve, "profiles": profiles, "arrays": arrays, "pictures": pictures, "keys": keys, "detect": detect, "targets": targets, "limits": limits}
