"""Renders short texts as a camera sees them on labels, tickets, meters and pages: 32 pixels high, of any width.

Everything follows from one seed. `python3 render.py SHEET.png` draws a sheet to look at; `python3 render.py --data FOLDER 256 77` writes 256
lines that nobody was trained on, as data for `sluice convert --smaller 10 --data FOLDER` and for `sluice quantize`.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

import texts

HEIGHT = 32
WIDTH_STEP = 8     # widths are multiples of this
GREY_STEP = 8      # grey values are multiples of this: 32 levels, so that sheets of them stay small
LONGEST = 480

# Class 0 of the reader is "no character"; class i is CHARACTERS[i - 1].
CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .,:;-/%'()+=!?&_#<>"

# (package, folder, licence). Faces whose names hold one of SKIPPED are too thin or too odd for a label.
FONTS = [
    ("fonts-dejavu-core, fonts-dejavu-extra", "truetype/dejavu", "Bitstream Vera licence; changes in the public domain"),
    ("fonts-liberation", "truetype/liberation", "GPL-2 with font exceptions"),
    ("fonts-freefont-ttf", "truetype/freefont", "GPL-3+ with the font exception"),
    ("fonts-croscore", "truetype/croscore", "OFL-1.1"),
    ("fonts-crosextra-carlito, fonts-crosextra-caladea", "truetype/crosextra", "OFL-1.1"),
    ("fonts-hack", "truetype/hack", "MIT and Bitstream Vera licence"),
    ("fonts-lato", "truetype/lato", "OFL-1.1"),
    ("fonts-open-sans", "truetype/open-sans", "Apache-2.0"),
    ("fonts-roboto-unhinted", "truetype/roboto/unhinted/RobotoTTF", "Apache-2.0"),
]
SKIPPED = ("Hairline", "Thin", "Math", "Black", "ExtraLight", "SymbolNeu", "Heavy")


def font_files():
    """All faces, sorted, so that a seed means the same everywhere; an error names the packages that are missing."""
    root = Path("/usr/share/fonts")
    missing = [package for package, folder, _ in FONTS if not (root / folder).is_dir()]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)} (scripts/setup --training)")
    files = [path for _, folder, _ in FONTS for path in sorted((root / folder).glob("*.ttf"))]
    return [path for path in files if not any(word in path.name for word in SKIPPED)]


class Texts:
    """Draws what is written on things: words, numbers, dates, prices, codes, short phrases."""

    def __init__(self, rng, longest):
        self.rng, self.longest = rng, longest
        self.words = texts.words(texts.read_documents())[:8000]

    def word(self):
        word = self.words[int(len(self.words) * self.rng.random() ** 2)]
        case = self.rng.random()
        return word if case < 0.55 else word.capitalize() if case < 0.8 else word.upper()

    def digits(self, low, high):
        return "".join(self.rng.choice(list("0123456789"), self.rng.integers(low, high + 1)))

    def number(self):
        form = self.rng.integers(7)
        if form == 0:
            return self.digits(1, 3) + self.rng.choice([".", ","]) + self.digits(1, 2)
        if form == 1:
            return self.digits(1, 2) + self.rng.choice([":", "/", "-"]) + self.digits(2, 2)
        if form == 2:
            return self.digits(1, 3) + self.rng.choice(["%", "+", " kg", " km", " m", " l"])
        if form == 3:
            return self.rng.choice(["#", "-", "<", ">", "="]) + self.digits(1, 4)
        return self.digits(2, 7)

    def code(self):
        letters = list("ABCDEFGHJKLMNPQRSTUVWXYZ")
        head = "".join(self.rng.choice(letters, self.rng.integers(1, 4)))
        return head + self.rng.choice(["", "-", "/", "_", " "]) + self.digits(1, 4)

    def marked(self):
        """A word with the signs that stand beside words."""
        word = self.word()
        form = self.rng.choice(["{}.", "{},", "({})", "{}:", "{};", "{}!", "{}?", "'{}'", "{}()", "{}=", "& {}", "_{}", "{}(", "{}'s", "-{}"])
        return str(form).format(word)

    def phrase(self):
        return self.word() + self.rng.choice([" ", " ", " ", "-", "_", ". "]) + self.word()

    def draw(self):
        makers = [self.word, self.number, self.code, self.marked, self.phrase]
        while True:
            text = str(makers[self.rng.choice(5, p=[0.34, 0.28, 0.1, 0.12, 0.16])]())
            if len(text) <= self.longest and all(c in CHARACTERS for c in text):
                return text


class Renderer:
    """Draws one text as a picture. `severity` in 0..1 says how bad the picture may be."""

    def __init__(self, rng):
        self.rng = rng
        self.files = font_files()
        self.faces = {}

    def face(self):
        path, size = self.files[self.rng.integers(len(self.files))], int(self.rng.choice([24, 32, 40]))
        if (path, size) not in self.faces:
            self.faces[path, size] = ImageFont.truetype(str(path), size)
        return self.faces[path, size]

    def ink(self, text):
        """1 where the text is, 0 elsewhere; margins as of a careful or a careless crop."""
        face, rng = self.face(), self.rng
        left, top, right, bottom = face.getbbox(text)
        ascent, descent = face.getmetrics()
        if rng.random() < 0.5:  # the whole line's height, not this text's
            top, bottom = min(top, int(ascent * 0.2)), max(bottom, ascent + int(descent * 0.8))
        margin = (bottom - top) * rng.uniform(0.04, 0.3, 4)
        width = int(right - left + margin[0] + margin[1])
        height = int(bottom - top + margin[2] + margin[3])
        image = Image.new("L", (max(width, 1), max(height, 1)), 0)
        ImageDraw.Draw(image).text((margin[0] - left, margin[2] - top), text, fill=255, font=face)
        scaled = image.width * HEIGHT / image.height * rng.uniform(0.85, 1.15)
        width = int(np.clip(round(scaled / WIDTH_STEP), 4, LONGEST // WIDTH_STEP)) * WIDTH_STEP
        return image.resize((width, HEIGHT), Image.BILINEAR)

    def warp(self, image, severity):
        """Slant, rotation and a wave, as on a page that is not flat."""
        rng = self.rng
        slant = rng.normal(0, 0.05 + 0.15 * severity)
        tilt = rng.normal(0, 0.005 + 0.02 * severity)
        wave, phase, length = rng.uniform(0, 0.3 + 1.7 * severity), rng.uniform(0, 6.28), rng.uniform(40, 160)
        ink = np.asarray(image, dtype=np.float32) / 255
        y, x = np.mgrid[0:HEIGHT, 0:image.width].astype(np.float32)
        across = x - image.width / 2
        from_x = x + slant * (y - HEIGHT / 2)
        from_y = y + np.clip(tilt * across, -4, 4) + wave * np.sin(x * 6.28 / length + phase)
        return sample(ink, from_x, from_y)

    def blurred(self, ink, severity):
        """Few pixels, then a lens out of focus or a hand that moved."""
        rng = self.rng
        image = Image.fromarray((ink * 255).astype(np.uint8))
        if rng.random() < 0.5:
            factor = 1 + rng.uniform(0, 0.8 + 1.9 * severity)
            small = (max(8, int(image.width / factor)), max(8, int(HEIGHT / factor)))
            image = image.resize(small, Image.BOX).resize((ink.shape[1], HEIGHT), Image.BICUBIC)
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.6 + 1.7 * severity)))
        ink = np.asarray(image, dtype=np.float32) / 255
        if rng.random() < severity:
            length = int(rng.integers(2, 4 + int(4 * severity)))
            ink = sum(np.roll(ink, shift, axis=1) for shift in range(length)) / length
        return ink

    def lit(self, ink, severity):
        """Paper and ink of some grey, light from one side, a shadow's edge, the sensor's noise."""
        rng = self.rng
        height, width = ink.shape
        paper, contrast = rng.uniform(130, 245), rng.uniform(0.9 - 0.65 * severity, 1.0)
        light = 1 + rng.normal(0, 0.06 + 0.12 * severity) * np.linspace(-1, 1, width)[None, :]
        light = light + rng.normal(0, 0.04 + 0.08 * severity) * np.linspace(-1, 1, height)[:, None]
        if rng.random() < 0.4 * severity:
            light = np.where(np.arange(width)[None, :] > rng.uniform(0, width), light * rng.uniform(0.55, 0.9), light)
        grey = paper * (1 - contrast * 0.85 * ink) * light
        grain = rng.normal(0, rng.uniform(1, 4 + 22 * severity), ink.shape)
        if rng.random() < 0.3:  # coarse, as of paper
            grain = (grain + np.roll(grain, 1, 0) + np.roll(grain, 1, 1)) / 1.7
        grey = grey + grain
        if rng.random() < 0.12:
            grey = 255 - grey
        return np.clip(np.round(grey / GREY_STEP) * GREY_STEP, 0, 255 // GREY_STEP * GREY_STEP).astype(np.uint8)

    def draw(self, text, severity):
        ink = self.warp(self.ink(text), severity)
        return self.lit(self.blurred(ink, severity), severity)


def sample(image, x, y):
    """Bilinear, 0 outside."""
    height, width = image.shape
    padded = np.pad(image, 1)
    x, y = np.clip(x + 1, 0, width), np.clip(y + 1, 0, height)
    left, top = x.astype(np.int32), y.astype(np.int32)
    dx, dy = x - left, y - top
    return ((1 - dy) * ((1 - dx) * padded[top, left] + dx * padded[top, left + 1])
            + dy * ((1 - dx) * padded[top + 1, left] + dx * padded[top + 1, left + 1]))


def normalise(grey):
    """What the reader sees: ink 1, ground 0, whichever of the two is the darker. `examples/reader.h` does the same.

    The darkest and the lightest fiftieth of the pixels are cut off; the ground is the side on which most pixels lie.
    """
    ordered = np.sort(grey, axis=None)
    cut = ordered.size // 50
    low, high, middle = int(ordered[cut]), int(ordered[-1 - cut]), int(ordered[ordered.size // 2])
    if low == high:
        return np.zeros(grey.shape, dtype=np.float32)
    values = grey.astype(np.float32)
    ink = high - values if 2 * middle >= low + high else values - low
    return np.clip(ink / np.float32(high - low), 0, 1)


def draw_items(seed, count, longest, hard_share, usual=0.35, hard=0.5):
    """`count` pairs (picture, text). A share of the pictures is at least as severe as `hard`, the rest at most as severe as `usual`."""
    rng = np.random.default_rng(seed)
    source, renderer = Texts(rng, longest), Renderer(rng)
    items = []
    for _ in range(count):
        severity = rng.uniform(hard, 1) if rng.random() < hard_share else usual * rng.random()
        text = source.draw()
        items.append((renderer.draw(text, severity), text))
    return items


def sheet_of(items, width=1024):
    """One picture of all items, row by row, and for each item its place: (picture, [(left, top, width, text)])."""
    left = top = 0
    places = []
    for grey, text in items:
        if left + grey.shape[1] > width:
            left, top = 0, top + HEIGHT
        places.append((left, top, grey.shape[1], text))
        left += grey.shape[1]
    sheet = np.zeros((top + HEIGHT, width), dtype=np.uint8)
    for (grey, _), (left, top, across, _) in zip(items, places):
        sheet[top:top + HEIGHT, left:left + across] = grey
    return sheet, places


def write_data(folder, count, seed, width=1024):
    """Lines as the reader sees them, side by side in arrays [1, 1, 32, width]: data for `sluice convert --data` and `sluice quantize`."""
    rows, left = [np.zeros((HEIGHT, width), dtype=np.float32)], 0
    for grey, _ in draw_items(seed, count, 12, 0.06, usual=0.1, hard=0.85):
        ink = normalise(grey)
        if left + ink.shape[1] > width:
            rows.append(np.zeros((HEIGHT, width), dtype=np.float32))
            left = 0
        rows[-1][:, left:left + ink.shape[1]] = ink
        left += ink.shape[1]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for i, row in enumerate(rows):
        np.save(Path(folder) / f"{i:03}.npy", row[None, None])


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--data":
        write_data(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif len(sys.argv) == 2:
        Image.fromarray(sheet_of(draw_items(1, 200, 10, 0.2))[0]).save(sys.argv[1])
    else:
        raise SystemExit("usage: render.py SHEET.png | render.py --data FOLDER COUNT SEED")
