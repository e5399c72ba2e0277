"""Attention of PyTorch that keeps the documents of a sequence apart, for bench/torch_gpu_step.py: varlen_attn over their cumulative lengths,
and flex_attention with a block mask. Either is found anew for every batch, in the batch's time; what a compiled graph is guarded by (the objects,
the mask's function, shapes) stays the same from batch to batch.
"""
import inspect

import torch


def document_numbers(ids, end_of_text):
    """Of each token, which document of its sequence it is in: the one that ends a document belongs to it."""
    ends = (ids == end_of_text).int()
    return ends.cumsum(1) - ends


class Varlen:
    """Documents of all sequences one behind the other, and empty ones up to a number that is the same for every batch."""

    SHORT = 512  # tokens of a document on average, for which there is room

    def __init__(self):
        from torch.nn.attention.varlen import varlen_attn
        known = inspect.signature(varlen_attn).parameters
        self.call = varlen_attn
        self.options = {"window_size": (-1, 0)} if "window_size" in known else {"is_causal": True}
        self.takes_groups = "enable_gqa" in known

    def find(self, numbers):
        batch, self.length = numbers.shape
        starts = torch.ones_like(numbers, dtype=torch.bool)
        starts[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        at = starts.flatten().nonzero().flatten().int()
        room = batch * (1 + -(-self.length // self.SHORT))
        if len(at) > room:
            raise ValueError(f"{len(at)} documents, and room for {room}")
        self.offsets = torch.full((room + 1,), batch * self.length, dtype=torch.int32, device=numbers.device)
        self.offsets[:len(at)] = at

    def attend(self, q, k, v):
        batch, heads, length, dim = q.shape
        rows = [x.transpose(1, 2).reshape(batch * length, x.shape[1], dim) for x in (q, k, v)]
        groups = {}
        if heads != k.shape[1] and self.takes_groups:
            groups = {"enable_gqa": True}
        elif heads != k.shape[1]:
            rows[1:] = [x.repeat_interleave(heads // k.shape[1], 1) for x in rows[1:]]
        y = self.call(*rows, self.offsets, self.offsets, self.length, self.length, **self.options, **groups)
        return y.view(batch, length, heads, dim).transpose(1, 2)


class Flex:
    def __init__(self):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        self.call, self.create, self.numbers = flex_attention, create_block_mask, None

        def see(b, _, query, key):
            return (self.numbers[b, query] == self.numbers[b, key]) & (query >= key)
        self.see = see

    def find(self, numbers):
        if self.numbers is None:
            self.numbers = numbers.clone()
        self.numbers.copy_(numbers)
        batch, length = numbers.shape
        self.mask = self.create(self.see, batch, None, length, length, device=numbers.device, _compile=numbers.is_cuda)

    def attend(self, q, k, v):
        return self.call(q, k, v, block_mask=self.mask, enable_gqa=q.shape[1] != k.shape[1])


class Finder:
    def __init__(self, kind, end_of_text):
        self.documents, self.end_of_text = {"varlen": Varlen, "flex": Flex}[kind](), end_of_text

    def __call__(self, ids):
        self.documents.find(document_numbers(ids, self.end_of_text))
        return self.documents
