"""Loss and gradients of transformers in training mode, with dropout masks computed here instead of drawn.

  dropout_peer.py DIR ours.safetensors [DIR ours.safetensors ...]

The rates are those of DIR/config.json, read by transformers; where they act is transformers' code. ours.safetensors has
input_ids, targets, dropout_keys (int64, one per row), loss and grad.<parameter>. The mask of an element follows from the
contract of the op dropout (src/ops/dropout.cpp): Philox4x32-10 with the row's key and the counter (site, head, position,
column / 4). Exit code 1: the two differ.
"""
import os
import sys

import numpy
import torch
from model_peer import TOLERANCE, deviations, forward_backward
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

ATTENTION, ATTENTION_OUT, MLP_OUT = 1, 2, 3  # of a layer; the embedding is site 0


def philox(key, counter):
    """Four words for arrays of 32-bit counter words (as uint64) and one 64-bit key."""
    low = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    c = [word.astype(numpy.uint64) for word in numpy.broadcast_arrays(*counter)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(b >> shift) ^ c[1] ^ numpy.uint64(k[0]), b & low, (a >> shift) ^ c[3] ^ numpy.uint64(k[1]), a & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(c, -1)


def kept(key, site, heads, rows, columns, rate):
    """[heads, rows, columns] of booleans."""
    groups = -(-columns // 4)
    words = philox(key, (numpy.arange(groups)[None, None, :], numpy.arange(rows)[None, :, None],
                         numpy.arange(heads)[:, None, None], numpy.array(site)))
    return words.reshape(heads, rows, groups * 4)[:, :, :columns] >= round(rate * 2**32)


class Masks:
    """Stands in for torch.nn.functional.dropout: which call it is says where in the model it stands."""

    def __init__(self, keys, positions):
        self.keys, self.positions = keys, positions
        self.layer, self.calls_after_attention = -1, 0

    def site(self, is_attention):
        if is_attention:
            self.layer, self.calls_after_attention = self.layer + 1, 0
            return 4 * (self.layer + 1) + ATTENTION
        if self.layer < 0:
            return 0
        self.calls_after_attention += 1
        return 4 * (self.layer + 1) + (ATTENTION_OUT if self.calls_after_attention == 1 else MLP_OUT)

    def __call__(self, x, p=0.5, training=True, inplace=False):
        site = self.site(x.dim() == 4)
        if p == 0 or not training:
            return x
        heads = x.shape[1] if x.dim() == 4 else 1
        masks = [kept(key, site, heads, self.positions, x.shape[-1], p) for key in self.keys]
        mask = torch.from_numpy(numpy.stack(masks)).reshape(x.shape)
        return x * mask / (1 - p)


def compare(directory, file):
    ours = load_file(file)
    keys = [key % 2**64 for key in ours.pop("dropout_keys").tolist()]
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, local_files_only=True,
                                                 attn_implementation="eager").train()
    input_ids, targets = ours.pop("input_ids"), ours.pop("targets")
    real, torch.nn.functional.dropout = torch.nn.functional.dropout, Masks(keys, input_ids.shape[1])
    try:
        truth = forward_backward(model, input_ids, targets)
    finally:
        torch.nn.functional.dropout = real
    del truth["logits"]
    if set(ours) != set(truth):
        print(f"{directory}: other tensors: {sorted(set(ours) ^ set(truth))}")
        return 1
    found = deviations(ours, truth)
    wrong = {name: deviation for name, deviation in found.items() if not deviation <= TOLERANCE}
    print(f"{model.config.model_type}: loss {truth['loss'].item():.6f}, {len(found) - len(wrong)} of {len(found)} tensors "
          f"within {TOLERANCE:.0e}, worst {max(found.values()):.2e}")
    for name, deviation in wrong.items():
        print(f"  WRONG {deviation:.2e} {name}")
    return 1 if wrong else 0


def main():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers_logging.disable_progress_bar()
    arguments = sys.argv[1:]
    return max(compare(*pair) for pair in zip(arguments[::2], arguments[1::2], strict=True))


if __name__ == "__main__":
    sys.exit(main())
