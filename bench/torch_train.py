"""PyTorch's best on this CPU: training a Llama-type model in fp32 with AdamW, to compare Sextant's `train` with.

Prints one line of JSON per mode: tokens/s (median of the measured steps), the process's peak memory, the losses.
Each mode runs in a process of its own, so peaks do not mix. Tokens are random, the same in every mode.
Modes join a way to run and, after a dash, a choice within it:
  eager | compile          kernels as they come | fused by torch.compile
  -chunked                 head and loss in chunks of tokens, gradients made in the same pass: logits never live whole
  -autotune                torch.compile(mode="max-autotune-no-cudagraphs")
The model is written for speed: packed QKV and gate|up weights, scaled_dot_product_attention, fused AdamW.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

MODES = ["eager", "eager-chunked", "compile", "compile-chunked", "compile-autotune"]
# What PyTorch's users on Arm servers are told to set: 1.5 % faster here.
ENVIRONMENT = {"THP_MEM_ALLOC_ENABLE": "1"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", nargs="+", default=["eager", "compile"], metavar="MODE", help=", ".join(MODES))
    for name, default in (("layers", 6), ("hidden", 384), ("heads", 6), ("kv-heads", 6), ("ffn", 1024), ("vocab", 8192),
                          ("seq", 256), ("batch", 8), ("steps", 12), ("warmup", 3), ("chunk", 512),
                          ("threads", len(os.sched_getaffinity(0)))):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.mode) - set(MODES)
    if unknown:
        parser.error(f"unknown mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    return arguments


def make_model(a):
    import torch
    import torch.nn.functional as F
    from torch import nn

    head_dim = a.hidden // a.heads

    def rotate(x, cos, sin):
        left, right = x.chunk(2, -1)
        return torch.cat((left * cos - right * sin, right * cos + left * sin), -1)

    class ChunkedLoss(torch.autograd.Function):
        """Head and cross-entropy over chunks of tokens. As the loss is the end of the program its gradient is 1, so the
        gradients of x and of the head are made while each chunk's logits are still in the cache."""

        @staticmethod
        def forward(ctx, x, head, targets):
            dx, dhead, total = torch.empty_like(x), torch.zeros_like(head), x.new_zeros(())
            for begin in range(0, x.shape[0], a.chunk):
                rows = slice(begin, begin + a.chunk)
                log_p = F.log_softmax(x[rows] @ head.t(), -1)
                wanted = targets[rows, None]
                total -= log_p.gather(1, wanted).sum()
                dlogits = log_p.exp().scatter_add(1, wanted, x.new_full(wanted.shape, -1.0)) / x.shape[0]
                dx[rows] = dlogits @ head
                dhead.addmm_(dlogits.t(), x[rows])
            ctx.save_for_backward(dx, dhead)
            return total / x.shape[0]

        @staticmethod
        def backward(ctx, dloss):
            dx, dhead = ctx.saved_tensors
            return dx * dloss, dhead * dloss, None

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(a.hidden, eps=1e-5), nn.RMSNorm(a.hidden, eps=1e-5)
            self.qkv = nn.Linear(a.hidden, (a.heads + 2 * a.kv_heads) * head_dim, bias=False)
            self.out = nn.Linear(a.heads * head_dim, a.hidden, bias=False)
            self.gate_up = nn.Linear(a.hidden, 2 * a.ffn, bias=False)
            self.down = nn.Linear(a.ffn, a.hidden, bias=False)

        def forward(self, x, cos, sin):
            batch, seq, _ = x.shape
            qkv = self.qkv(self.norm1(x)).view(batch, seq, -1, head_dim).transpose(1, 2)
            q, k, v = qkv.split([a.heads, a.kv_heads, a.kv_heads], 1)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=a.heads != a.kv_heads)
            x = x + self.out(y.transpose(1, 2).reshape(batch, seq, -1))
            gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Model(nn.Module):
        def __init__(self, chunked):
            super().__init__()
            self.chunked = chunked
            self.embedding = nn.Embedding(a.vocab, a.hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(a.layers))
            self.norm = nn.RMSNorm(a.hidden, eps=1e-5)
            frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
            angles = torch.outer(torch.arange(a.seq), frequencies)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())
            for p in self.parameters():
                if p.dim() == 2:
                    nn.init.normal_(p, std=0.02)

        def forward(self, ids, targets):
            x = self.embedding(ids)
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            x, head = self.norm(x).flatten(0, 1), self.embedding.weight  # tied
            if self.chunked:
                return ChunkedLoss.apply(x, head, targets.flatten())
            return F.cross_entropy(F.linear(x, head), targets.flatten())

    return Model


def peak_rss_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024


def batches(a):
    import torch
    generator = torch.Generator().manual_seed(0)
    for _ in range(a.warmup + a.steps):
        rows = torch.randint(0, a.vocab, (a.batch, a.seq + 1), generator=generator)
        yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def model_flops_per_token(a):
    """Six per weight in a matrix product, the tied head once, and causal attention counted by half."""
    head_dim = a.hidden // a.heads
    layer = a.hidden * (2 * a.heads + 2 * a.kv_heads) * head_dim + 3 * a.hidden * a.ffn
    return 6 * (a.layers * layer + a.vocab * a.hidden) + 6 * a.layers * a.seq * a.heads * head_dim


def worker(a, mode):
    import torch
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    way, _, choice = mode.partition("-")
    model = make_model(a)(choice == "chunked")
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}],
        lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    run = model
    if way == "compile":
        run = torch.compile(model, mode="max-autotune-no-cudagraphs" if choice == "autotune" else None)
    losses, seconds, cpu_seconds = [], [], []
    for ids, targets in batches(a):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        loss = run(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
        cpu_seconds.append(time.process_time() - cpu_begin)
    step = statistics.median(seconds[a.warmup:])
    tokens_per_s = a.batch * a.seq / step
    print(json.dumps({
        "mode": mode, "tokens_per_s": round(tokens_per_s, 1), "step_s": round(step, 4),
        "fastest_step_s": round(min(seconds[a.warmup:]), 4), "first_step_s": round(seconds[0], 2),
        "cpu_s_per_step": round(statistics.median(cpu_seconds[a.warmup:]), 4),
        "model_gflops": round(tokens_per_s * model_flops_per_token(a) / 1e9, 1),
        "peak_rss_mb": round(peak_rss_bytes() / 1e6, 1), "parameters": sum(p.numel() for p in parameters),
        "threads": a.threads, "torch": torch.__version__, "losses": [round(loss, 5) for loss in losses]}), flush=True)


def main():
    a = parse_arguments()
    if a.worker:
        return worker(a, a.worker)
    environment = {**ENVIRONMENT, **os.environ, "OMP_NUM_THREADS": str(a.threads)}
    for mode in a.mode:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--worker", mode], env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
