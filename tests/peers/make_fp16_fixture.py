"""Writes tests/fixtures/grad_scaler/fp16_training.csv: steps of the model of fixtures/models/llama in fp16 under
torch.amp.GradScaler, with overflows that fp16 has by itself and planted ones.

    build/peers/bin/python tests/peers/make_fp16_fixture.py

Every value between modules, and every gradient of one, is rounded to torch.float16; weights are the f32 ones rounded to
torch.float16, gradients of weights and the update are f32. The loss of a planted step is multiplied by `factor`.
"""
import torch
from safetensors.torch import load_file
from torch import nn

from make_model_fixtures import FIXTURES
from model_peer import load_model, loss_of

OUT = FIXTURES.parent / "grad_scaler" / "fp16_training.csv"
STEPS, PLANTED, FACTOR, CLIP, DECAY, LR = 24, (11, 18), 2.0**16, 1.0, 0.1, 1e-2
INITIAL, GROWTH, BACKOFF, INTERVAL = 2.0**30, 2.0, 0.25, 3


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(context, x, dtype):
        context.dtype = dtype
        return x.to(dtype).float()

    @staticmethod
    def backward(context, gradient):
        return gradient.to(context.dtype).float(), None


def round_outputs(model, dtype):
    """Between modules all is of `dtype`. What the head makes stays inside of the loss."""
    def hook(module, _, output):
        if torch.is_tensor(output):
            return Rounded.apply(output, dtype)
        return (Rounded.apply(output[0], dtype), *output[1:])
    head = model.get_output_embeddings()
    for module in model.modules():
        leaf = not list(module.children())
        if module is not head and (leaf or "DecoderLayer" in type(module).__name__):
            module.register_forward_hook(hook)
    head.register_forward_pre_hook(lambda _, args: (Rounded.apply(args[0], dtype),))


def main():
    batch = load_file(FIXTURES / "llama" / "expected.safetensors")
    model = load_model(FIXTURES / "llama")
    round_outputs(model, torch.float16)
    held = list(model.parameters())
    masters = [nn.Parameter(p.detach().clone()) for p in held]
    optimizer = torch.optim.AdamW([{"params": [p for p in masters if p.dim() >= 2], "weight_decay": DECAY},
                                   {"params": [p for p in masters if p.dim() < 2], "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.95), eps=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=INITIAL, growth_factor=GROWTH, backoff_factor=BACKOFF, growth_interval=INTERVAL)
    lines = [f"# torch {torch.__version__}; initial={INITIAL!r} growth_factor={GROWTH!r} backoff={BACKOFF!r} "
             f"growth_interval={INTERVAL} lr={LR!r} clip={CLIP!r} weight_decay={DECAY!r}", "factor,loss,used,skipped,next,norm"]
    for step in range(STEPS):
        factor = FACTOR if step in PLANTED else 1.0
        with torch.no_grad():
            for p, master in zip(held, masters):
                p.copy_(master.half().float())
        model.zero_grad()
        loss = loss_of(model(input_ids=batch["input_ids"].long()).logits, batch["targets"])
        used = scaler.get_scale()
        scaler.scale(loss * factor).backward()
        for p, master in zip(held, masters):
            master.grad = p.grad.clone()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(masters, CLIP)
        scaler.step(optimizer)
        scaler.update()
        skipped = not torch.isfinite(norm)
        lines.append(f"{factor!r},{loss.item()!r},{used!r},{int(skipped)},{scaler.get_scale()!r},{norm.item()!r}")
    OUT.write_text("\n".join(lines) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
