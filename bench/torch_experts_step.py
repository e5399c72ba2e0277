"""A training step of a model with experts in PyTorch on one GPU: torch.compile and grouped_mm, no token dropped; the other side of bench/gpu_experts_peer.py.

Blocks as in configs/bench/{olmoe-8l,qwen3moe-6l,mixtral-3l}.toml: RMSNorm, attention with norms of q and k and RoPE, the best K of E experts with SwiGLU, weights that
sum to 1, a loss that balances experts. fp32 master weights under bf16 autocast, fused AdamW. Prints one line of JSON.
"""
import argparse
import json
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

grouped_mm = getattr(F, "grouped_mm", None) or torch._grouped_mm


class Experts(nn.Module):
    """combine: `index_add` onto the tokens, or `sum` of each token's rows after the inverse permutation."""

    def __init__(self, hidden, experts, per_token, ffn, combine, balanced):
        super().__init__()
        self.experts, self.per_token, self.combine, self.balanced = experts, per_token, combine, balanced
        self.router = nn.Linear(hidden, experts, bias=False)
        self.up = nn.Parameter(torch.empty(experts, hidden, 2 * ffn))
        self.down = nn.Parameter(torch.empty(experts, ffn, hidden))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        scores = F.softmax(self.router(x).float(), -1)
        weights, chosen = scores.topk(self.per_token, -1)
        if self.balanced:
            chosen = (torch.arange(chosen.numel(), device=x.device) % self.experts).view_as(chosen)
            weights = scores.gather(-1, chosen)
        weights = weights / weights.sum(-1, keepdim=True)
        slots = chosen.reshape(-1)
        order = slots.argsort(stable=True)
        counts = torch.zeros(self.experts, device=x.device, dtype=torch.int32).scatter_add_(
            0, slots, torch.ones_like(slots, dtype=torch.int32))
        offsets = counts.cumsum(0, dtype=torch.int32)
        tokens = order // self.per_token
        gate, up = grouped_mm(x[tokens].bfloat16(), self.up.bfloat16(), offs=offsets).chunk(2, -1)
        rows = grouped_mm(F.silu(gate) * up, self.down.bfloat16(), offs=offsets)
        if self.combine == "index_add":
            rows = rows * weights.reshape(-1)[order].unsqueeze(-1).bfloat16()
            out = torch.zeros_like(x, dtype=torch.bfloat16).index_add_(0, tokens, rows)
        else:
            inverse = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=x.device))
            out = (rows[inverse].view(-1, self.per_token, shape[-1]).float() * weights.unsqueeze(-1)).sum(1).bfloat16()
        balance = self.experts * (scores.mean(0) * (counts.float() / slots.numel())).sum()
        return out.view(shape), balance


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, model, options):
        super().__init__()
        hidden, self.heads, self.kv_heads = model["hidden"], model["heads"], model["kv_heads"]
        self.norm1, self.norm2, self.q_norm, self.k_norm = (nn.RMSNorm(n, eps=1e-5) for n in (hidden, hidden, 128, 128))
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv_heads) * 128, bias=False)
        self.out = nn.Linear(self.heads * 128, hidden, bias=False)
        self.experts = Experts(hidden, model["experts"]["count"], model["experts"]["per_token"], model["experts"]["ffn"], **options)

    def forward(self, x, cos, sin):
        batch, seq, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, seq, -1, 128).transpose(1, 2).split([self.heads, self.kv_heads, self.kv_heads], 1)
        q, k = rope(self.q_norm(q), cos, sin).bfloat16(), rope(self.k_norm(k), cos, sin).bfloat16()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, -1))
        y, balance = self.experts(self.norm2(x))
        return x + y, balance


class Model(nn.Module):
    def __init__(self, model, seq, options):
        super().__init__()
        self.embedding = nn.Embedding(model["vocab"], model["hidden"])
        self.blocks = nn.ModuleList(Block(model, options) for _ in range(model["layers"]))
        self.norm = nn.RMSNorm(model["hidden"], eps=1e-5)
        self.head = nn.Linear(model["hidden"], model["vocab"], bias=False)
        angles = torch.outer(torch.arange(seq).float(), model["rope_theta"] ** (-torch.arange(0, 128, 2).float() / 128))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x, balance = self.embedding(tokens), 0.0
        for block in self.blocks:
            x, one = block(x, self.cos, self.sin)
            balance = balance + one
        loss = F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())
        return loss + 0.01 * balance / len(self.blocks)


def time_block(model, config, options, weights, rounds=20):
    """Forward and backward of one layer's experts alone, with the router, compiled; seconds. With f32 weights, as in the whole step, autocast makes bf16 of
    them and f32 of their gradients."""
    experts = Experts(model["hidden"], model["experts"]["count"], model["experts"]["per_token"], model["experts"]["ffn"], **options).cuda().to(weights)
    for parameter in experts.parameters():
        nn.init.normal_(parameter, std=0.02)
    forward = torch.compile(experts)
    x = torch.randn(config["batch"]["sequences"], config["batch"]["seq"], model["hidden"], device="cuda", dtype=torch.bfloat16, requires_grad=True)
    gradient = torch.randn_like(x)
    for i in range(rounds + 5):
        if i == 5:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            y, _ = forward(x)
        y.backward(gradient)
        x.grad = None
        for parameter in experts.parameters():
            parameter.grad = None
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / rounds


def run(arguments):
    config = json.loads(arguments.config)
    model, batch, seq = config["model"], config["batch"]["sequences"], config["batch"]["seq"]
    options = {"combine": arguments.combine, "balanced": arguments.balanced}
    if arguments.block:
        seconds = {name: time_block(model, config, options, weights) for name, weights in (("f32", torch.float32), ("bf16", torch.bfloat16))}
        print(json.dumps({"block_s": seconds, "torch": torch.__version__}), flush=True)
        return
    begin = time.perf_counter()
    torch.manual_seed(0)
    with torch.device("cuda"):
        module = Model(model, seq, options)
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    forward = torch.compile(module)
    tokens = torch.from_numpy(np.fromfile(arguments.tokens, dtype=np.uint32).astype(np.int64))
    times, losses, first = [], [], None
    for step in range(arguments.steps):
        at = step * batch * (seq + 1) % (len(tokens) - batch * (seq + 1))
        block = tokens[at:][: batch * (seq + 1)].view(batch, seq + 1).cuda()
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = forward(block[:, :-1], block[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
        first = first or time.perf_counter() - begin
    late = sorted(times[len(times) // 2:])
    print(json.dumps({"step_s": late[len(late) // 2], "first_step_s": first, "losses": losses,
                      "peak_bytes": torch.cuda.max_memory_allocated(), "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True, help="the run's config, as JSON")
    parser.add_argument("--tokens")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--combine", choices=["index_add", "sum"], default="index_add")
    parser.add_argument("--balanced", action="store_true", help="experts take turns")
    parser.add_argument("--block", action="store_true", help="the experts of one layer alone")
    run(parser.parse_args())
