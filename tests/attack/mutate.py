"""Changes of files that parsers trip over: of bytes, of protobuf fields, of JSON values, of headers with their checksums made right again.

Every function takes a random.Random first and returns bytes (or text); the same seed makes the same change.
"""
import ctypes
import ctypes.util
import json
import struct
import zlib

TELLING_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFF, 0x40)
TELLING_NUMBERS = (0, 1, 2, 3, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


def of_bytes(random, data, most=None):
    """One to four changes: bits, bytes, words, runs that go, come or come again, a cut."""
    data = bytearray(data)
    for _ in range(random.randint(1, 4)):
        size = len(data)
        at = random.randrange(size) if size else 0
        kind = random.randrange(8)
        if kind == 0 and size:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1 and size:
            data[at] = random.choice(TELLING_BYTES)
        elif kind == 2 and size > 1:
            del data[at : at + random.randint(1, 16)]
        elif kind == 3:
            data[at:at] = bytes(random.choice(TELLING_BYTES) for _ in range(random.randint(1, 4)))
        elif kind == 4 and size > 8:
            length = random.randint(1, 8)
            source = random.randrange(size - length)
            data[at : at + length] = data[source : source + length]
        elif kind == 5 and size >= 4:
            width = random.choice((2, 4, 8))
            at -= at % width
            word = random.choice(TELLING_NUMBERS) % (1 << 8 * width)
            data[at : at + width] = word.to_bytes(width, random.choice(("little", "big")))
        elif kind == 6 and random.random() < 0.3:
            del data[at:]
        elif kind == 7 and size > 16:
            data[at:at] = data[at : at + random.randint(8, 64)]
    return bytes(data if most is None else data[:most])


# --- Protobuf: fields are found without the schema; what reads well as a message may be one.


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("no varint")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields_of(data):
    """[number, wire type, value]; ValueError where the bytes are no message."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("no field")
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            width = 8 if wire == 1 else 4
            value, at = data[at : at + width], at + width
        elif wire == 2:
            length, at = read_varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            raise ValueError("no wire type")
        if at > len(data):
            raise ValueError("cut")
        fields.append([number, wire, value])
    return fields


def message_of(fields):
    out = bytearray()
    for number, wire, value in fields:
        out += varint(number << 3 | wire)
        if wire == 0:
            out += varint(value)
        elif wire == 2:
            out += varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def strings_of(data, found):
    """Names and operators that a message has, to put them elsewhere."""
    try:
        for number, wire, value in fields_of(data):
            if wire == 2:
                if value.isascii() and 0 < len(value) < 40:
                    found.append(value)
                strings_of(value, found)
    except ValueError:
        pass
    return found


def of_field(random, field, strings):
    number, wire, value = field
    if wire == 0:
        return [number, 0, random.choice((random.choice(TELLING_NUMBERS), -random.choice(TELLING_NUMBERS), value + 1, value - 1, random.randrange(32)))]
    if wire in (1, 5):
        width = 8 if wire == 1 else 4
        telling = (0.0, -0.0, 1.0, -1.0, 1e38, float("inf"), float("-inf"), float("nan"), 1e-45)
        return [number, wire, struct.pack("<d" if width == 8 else "<f", random.choice(telling))]
    kind = random.randrange(4)
    if kind == 0 and strings:
        return [number, 2, random.choice(strings)]
    if kind == 1:  # packed whole numbers, as the extents of tensors are
        return [number, 2, b"".join(varint(random.choice(TELLING_NUMBERS)) for _ in range(random.randint(0, 5)))]
    if kind == 2:
        return [number, 2, b""]
    return [number, 2, of_bytes(random, value)]


def of_message(random, data, strings, depth=0):
    """A change of one field somewhere in the message: its value, or that it is there twice, not at all, elsewhere, or of another number."""
    try:
        fields = fields_of(data)
    except ValueError:
        return of_bytes(random, data)
    if not fields:
        return of_bytes(random, data)
    at = random.randrange(len(fields))
    number, wire, value = fields[at]
    if wire == 2 and value and depth < 12 and random.random() < 0.8:
        try:
            if fields_of(value):
                fields[at] = [number, 2, of_message(random, value, strings, depth + 1)]
                return message_of(fields)
        except ValueError:
            pass
    kind = random.randrange(8)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields.insert(random.randrange(len(fields) + 1), list(fields[at]))
    elif kind == 2:
        other = random.randrange(len(fields))
        fields[at], fields[other] = fields[other], fields[at]
    elif kind == 3:
        fields[at] = [random.randint(1, 25), wire, value]
    else:
        fields[at] = of_field(random, fields[at], strings)
    return message_of(fields)


def of_onnx(random, data, strings, most):
    """Of at most `most` bytes: changes of fields, rarely of bytes."""
    for _ in range(20):
        changed = data
        for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
            changed = of_message(random, changed, strings) if random.random() < 0.95 else of_bytes(random, changed)
        if len(changed) <= most:
            return changed
    return data[:most]


# --- JSON


class Twice(dict):
    """An object that is written with one of its keys twice."""

    def items(self):
        pairs = list(super().items())
        return pairs + pairs[:1]


def hostile_value(random, like):
    big = random.choice((0, -1, 1, 0.5, -0.0, 1e-300, 1e300, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1, 2**64, -(2**63), 10**40))
    return random.choice(
        (
            big,
            big,
            big,
            None,
            True,
            "",
            "x",
            "nan",
            "A" * 5000,
            "\x00\x1b[31m\n",
            "\ud800",
            [],
            {},
            [like],
            [like] * 300,
            {"x": like},
            [[]] * 50,
            nested(random.choice((50, 5000))),
        )
    )


def nested(depth):
    return Raw("[" * depth + "]" * depth)


class Raw:
    """Text that stands in a JSON text as it is."""

    def __init__(self, text):
        self.text = text


def text_of(value):
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(key) + ":" + text_of(each) for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return json.dumps(value)


def places_of(value, path=()):
    """Every place in the value, as the keys that lead there."""
    found = [path] if path else []
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += places_of(each, path + (key,))
    return found


def of_json(random, text, keep=lambda path, value: True, lasting=()):
    """Changes of values and keys; sometimes of the text. `keep(path, value)` says whether a value may stand there; `lasting` keys stay."""
    root = json.loads(text)
    for _ in range(random.choice((1, 1, 2, 4))):
        places = places_of(root)
        if not places:
            break
        path = random.choice(places)
        holder = root
        for key in path[:-1]:
            holder = holder[key]
        key, kind = path[-1], random.randrange(8)
        if kind <= 1 and key in lasting:
            continue
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            value = holder.pop(key)
            holder[random.choice((key + "x", key.upper(), "", "\x00", "k" * 3000))] = value
        elif kind == 2 and isinstance(holder, list):
            holder.extend([holder[key]] * random.choice((1, 3, 1000)))
        else:
            value = hostile_value(random, holder[key])
            if keep(path, value):
                holder[key] = value
    if isinstance(root, dict) and random.random() < 0.05:
        root = Twice(root)
    try:
        data = text_of(root).encode("utf-8", "surrogatepass")
    except RecursionError:
        data = text.encode()
    return of_bytes(random, data) if random.random() < 0.15 else data


# --- Files with checksums


def xxh3_64():
    """The hash of model files and plans, or None where the library is not there."""
    name = ctypes.util.find_library("xxhash")
    if name is None:
        return None
    function = ctypes.CDLL(name).XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    return lambda data: function(data, len(data))


def of_plan(random, data, hash64):
    """A plan file whose body is changed, and whose prefix mostly agrees with it."""
    if hash64 is None or random.random() < 0.15:
        return of_bytes(random, data)
    body = of_bytes(random, data[32:])
    return data[:16] + struct.pack("<QQ", len(body), hash64(body)) + body


def png_of(chunks):
    out = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks:
        out += struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    return out


def of_png(random, data):
    """Chunks changed, doubled, dropped or swapped, with lengths and checksums made right or left wrong."""
    if random.random() < 0.2:
        return of_bytes(random, data)
    at, chunks = 8, []
    while at + 12 <= len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        chunks.append([data[at + 4 : at + 8], data[at + 8 : at + 8 + length]])
        at += 12 + length
    for _ in range(random.randint(1, 3)):
        if not chunks:
            break
        i = random.randrange(len(chunks))
        kind = random.randrange(6)
        if kind == 0:
            del chunks[i]
        elif kind == 1:
            chunks.insert(random.randrange(len(chunks) + 1), list(chunks[i]))
        elif kind == 2:
            chunks[i][0] = random.choice((b"PLTE", b"tRNS", b"IDAT", b"CgBI", b"IHDR", b"zzzz", b"ZZZZ"))
        elif kind == 3 and chunks[i][0] == b"IDAT":
            try:
                pixels = of_bytes(random, zlib.decompress(chunks[i][1]))
            except zlib.error:
                pixels = b"\0" * random.choice((0, 100, 10**6))
            chunks[i][1] = zlib.compress(pixels)
        elif kind == 4 and chunks[0][0] == b"IHDR" and len(chunks[0][1]) >= 13:
            width, height = (random.choice((0, 1, 7, 1000, 65535, 2**24, 2**31 - 1, 2**32 - 1)) for _ in range(2))
            depth, colour = random.choice((1, 2, 4, 8, 16, 0, 255)), random.choice((0, 2, 3, 4, 6, 1, 255))
            chunks[0][1] = struct.pack(">IIBBBBB", width, height, depth, colour, random.choice((0, 0, 1)), 0, random.choice((0, 1, 2)))
        else:
            chunks[i][1] = of_bytes(random, chunks[i][1])
    whole = png_of(chunks)
    return whole if random.random() < 0.9 else of_bytes(random, whole)
