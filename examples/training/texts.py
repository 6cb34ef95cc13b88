"""Debian's own documents as plain ASCII: what the language model learns from and where the reader's words come from.

Each document is cut into blocks; every tenth block is held out and never trained on.
"""

import gzip
import re
import unicodedata
from pathlib import Path

# (package, file, licence as the package's copyright file states it)
DOCUMENTS = [
    ("debian-reference-en", "/usr/share/debian-reference/debian-reference.en.txt.gz", "GPL-2+"),
    ("debian-policy", "/usr/share/doc/debian-policy/policy.txt.gz", "GPL-2+"),
    ("developers-reference", "/usr/share/developers-reference/developers-reference.txt.gz", "GPL-2+"),
    ("maint-guide", "/usr/share/doc/maint-guide/maint-guide.en.txt.gz", "GPL-2+"),
    ("debian-history", "/usr/share/doc/debian-history/docs/project-history.en.txt.gz", "GPL-2+"),
]

BLOCK = 2048          # characters that are held out or trained on together
HELD_OUT_EVERY = 10   # of these blocks one is held out

PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2026": "...",
                       "\u2022": "*", "\u2192": "->", "\u00a0": " "})


def to_ascii(text):
    """Quotes, dashes and accents become their ASCII forms; what has none is left out."""
    text = unicodedata.normalize("NFKD", text.translate(PLAIN))
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


def unwrap(text):
    """One paragraph a line, single spaces; rules of boxes and tables go."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text):
        line = re.sub(r"[-=_*+.|~^ ]{4,}", " ", " ".join(paragraph.split()))
        if len(line) > 20:
            paragraphs.append(line.strip())
    return "\n".join(paragraphs) + "\n"


def read_documents():
    """The texts of all documents, or an error that names the packages which are missing."""
    missing = [package for package, path, _ in DOCUMENTS if not Path(path).exists()]
    if missing:
        raise SystemExit(f"not installed: {' '.join(missing)} (scripts/setup --training)")
    texts = []
    for _, path, _ in DOCUMENTS:
        with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as file:
            texts.append(unwrap(to_ascii(file.read())))
    return texts


def split(texts):
    """(what is trained on, list of held-out blocks)."""
    kept, held_out = [], []
    number = 0
    for text in texts:
        for at in range(0, len(text), BLOCK):
            number += 1
            (held_out if number % HELD_OUT_EVERY == 0 else kept).append(text[at:at + BLOCK])
    return "".join(kept), held_out


def words(texts):
    """The distinct lower-case words of two to ten letters, most frequent first."""
    counts = {}
    for text in texts:
        for word in re.findall(r"[a-z]{2,10}", text.lower()):
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: (-counts[word], word))
