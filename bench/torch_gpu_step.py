"""PyTorch's side of bench/gpu_train_peer.py: a plain, well-written training step on one GPU.

fp32 master weights under bf16 autocast, SDPA attention (cuDNN's where PyTorch picks it), fused AdamW, clipping; `compile` wraps the
model in torch.compile, `compile-varlen` and `compile-flex` keep documents apart (bench/torch_documents.py), `compile-bf16` holds the weights in bf16 too, `compile-fp8` has linears in fp8 (bench/torch_fp8_linear.py),
`compile-checkpoint` computes blocks again in backward, and the loss in parts of the sequence. Reads a shape as JSON on the command line and tokens from a file,
prints one JSON line: step times, losses, peak memory as PyTorch counts it.
"""
import argparse
import json
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

LOSS_PART = 8192  # positions whose logits there are at a time, with checkpointing


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden, ffn, bias = shape["hidden"], shape["ffn"], shape["architecture"] == "gpt2"
        self.heads, self.kv_heads, self.head_dim, self.gpt2 = shape["heads"], shape["kv_heads"], hidden // shape["heads"], bias
        norm = (lambda: nn.LayerNorm(hidden)) if bias else (lambda: nn.RMSNorm(hidden, eps=1e-5))
        self.norm1, self.norm2 = norm(), norm()
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv_heads) * self.head_dim, bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        self.up = nn.Linear(hidden, ffn if bias else 2 * ffn, bias=bias)
        self.down = nn.Linear(ffn, hidden, bias=bias)

    def forward(self, x, turn, documents=None):
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, -1, self.head_dim).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 1)
        if turn is not None:
            q, k = rope(q, *turn), rope(k, *turn)
        if documents is not None:
            y = documents.attend(q, k, v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        h = self.up(self.norm2(x))
        if self.gpt2:
            return x + self.down(F.gelu(h, approximate="tanh"))
        gate, up = h.chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, shape, checkpointing=False):
        super().__init__()
        self.checkpointing = checkpointing
        hidden, seq = shape["hidden"], shape["seq"]
        self.embed = nn.Embedding(shape["vocab"], hidden)
        self.positions = nn.Embedding(shape["max_seq"], hidden) if shape["architecture"] == "gpt2" else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape["layers"]))
        self.norm = nn.LayerNorm(hidden) if shape["architecture"] == "gpt2" else nn.RMSNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, shape["vocab"], bias=False)
        self.head.weight = self.embed.weight
        if self.positions is None:
            dim = hidden // shape["heads"]
            frequencies = 1.0 / (shape["rope_theta"] ** (torch.arange(0, dim, 2).float() / dim))
            angles = torch.outer(torch.arange(seq).float(), frequencies)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
        self.apply(lambda m: [nn.init.normal_(p, std=0.02) for p in m.parameters(False) if p.dim() > 1])

    def forward(self, ids, targets, documents=None):
        x, turn = self.embed(ids), None
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        else:
            turn = (self.cos, self.sin)
        for block in self.blocks:
            x = checkpoint(block, x, turn, documents, use_reentrant=False) if self.checkpointing else block(x, turn, documents)
        rows, targets = self.norm(x).flatten(0, 1), targets.flatten()
        if not self.checkpointing:
            return self.loss(rows, targets)
        parts = [checkpoint(self.loss, *part, use_reentrant=False) * len(part[1]) for part in zip(rows.split(LOSS_PART), targets.split(LOSS_PART))]
        return torch.stack(parts).sum() / len(targets)

    def loss(self, rows, targets):
        return F.cross_entropy(self.head(rows).float(), targets)


# Our parameter names beside those of a Hugging Face directory, so that both sides can start from the same weights.
def load_weights(model, directory, shape):
    from safetensors.torch import load_file
    import glob
    tensors = {}
    for name in sorted(glob.glob(f"{directory}/model*.safetensors")):
        tensors.update(load_file(name))
    own = model.state_dict()
    with torch.no_grad():
        def put(key, value):
            own[key].copy_(value)
        if shape["architecture"] == "gpt2":
            put("embed.weight", tensors["transformer.wte.weight"])
            put("positions.weight", tensors["transformer.wpe.weight"])
            for end in ("weight", "bias"):
                put(f"norm.{end}", tensors[f"transformer.ln_f.{end}"])
            for i in range(shape["layers"]):
                for ours, theirs in (("norm1", "ln_1"), ("qkv", "attn.c_attn"), ("out", "attn.c_proj"), ("norm2", "ln_2"),
                                     ("up", "mlp.c_fc"), ("down", "mlp.c_proj")):
                    for end in ("weight", "bias"):
                        tensor = tensors[f"transformer.h.{i}.{theirs}.{end}"]
                        put(f"blocks.{i}.{ours}.{end}", tensor.T if tensor.dim() == 2 else tensor)
        else:
            put("embed.weight", tensors["model.embed_tokens.weight"])
            put("norm.weight", tensors["model.norm.weight"])
            for i in range(shape["layers"]):
                at = lambda name: tensors[f"model.layers.{i}.{name}.weight"]
                put(f"blocks.{i}.norm1.weight", at("input_layernorm"))
                put(f"blocks.{i}.norm2.weight", at("post_attention_layernorm"))
                put(f"blocks.{i}.qkv.weight", torch.cat([at(f"self_attn.{n}_proj") for n in "qkv"]))
                put(f"blocks.{i}.out.weight", at("self_attn.o_proj"))
                put(f"blocks.{i}.up.weight", torch.cat([at("mlp.gate_proj"), at("mlp.up_proj")]))
                put(f"blocks.{i}.down.weight", at("mlp.down_proj"))


def run(arguments, shape):
    begin = time.perf_counter()
    torch.manual_seed(0)
    model = Model(shape, arguments.mode.endswith("checkpoint")).cuda()
    if arguments.weights:
        load_weights(model, arguments.weights, shape)
    if arguments.mode.endswith("bf16"):
        model = model.bfloat16()
    if arguments.mode.endswith("fp8"):
        from torch_fp8_linear import use_fp8
        use_fp8(model)
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95), fused=True)
    forward = torch.compile(model) if arguments.mode.startswith("compile") else model
    batch, seq = shape["batch"], shape["seq"]
    tokens = torch.from_numpy(np.fromfile(arguments.tokens, dtype=np.uint32).astype(np.int64))
    times, losses, first = [], [], None
    if arguments.end_of_text is not None:
        from torch_documents import Finder
        find = Finder(arguments.mode.split("-")[-1], arguments.end_of_text)
    for step in range(arguments.steps):
        at = step * batch * (seq + 1) if not arguments.rows else None
        if arguments.rows:  # the order in which the other side read them: one row of samples per step
            rows = arguments.rows[step * batch:(step + 1) * batch]
            block = torch.stack([tokens[r * seq:r * seq + seq + 1] for _, r in rows]).cuda()
        else:
            block = tokens[at % (len(tokens) - batch * (seq + 1)):][: batch * (seq + 1)].view(batch, seq + 1).cuda()
        torch.cuda.synchronize()
        start = time.perf_counter()
        documents = find(block[:, :-1]) if arguments.end_of_text is not None else None
        with torch.autocast("cuda", torch.bfloat16, enabled=not arguments.mode.endswith("bf16")):
            loss = forward(block[:, :-1], block[:, 1:], documents)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
        first = first or time.perf_counter() - begin
    late = sorted(times[len(times) // 2:])
    print(json.dumps({"mode": arguments.mode, "step_s": late[len(late) // 2], "first_step_s": first, "losses": losses,
                      "peak_bytes": torch.cuda.max_memory_allocated(), "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", required=True)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--mode", default="compile")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--end-of-text", type=int, help="the token that ends a document: tokens see their own one only")
    parser.add_argument("--weights", help="a Hugging Face directory to start from")
    parser.add_argument("--rows", type=lambda path: json.load(open(path)), help="what `sextant data order` printed")
    torch.set_float32_matmul_precision("high")
    parsed = parser.parse_args()
    run(parsed, json.loads(parsed.shape))
