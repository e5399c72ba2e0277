"""Writes tests/fixtures/bf16_training.csv: steps of the model of fixtures/models/llama in bf16 with f32 master weights.

    build/peers/bin/python tests/peers/make_bf16_fixture.py

Every value between modules, and every gradient of one, is rounded to torch.bfloat16; weights are the f32 ones rounded to
torch.bfloat16, gradients of weights and the update are f32.
"""
import torch
from safetensors.torch import load_file
from torch import nn

from make_fp16_fixture import round_outputs
from make_model_fixtures import FIXTURES
from model_peer import load_model, loss_of

OUT = FIXTURES.parent / "bf16_training.csv"
STEPS, CLIP, DECAY, LR = 16, 1.0, 0.1, 1e-2


def main():
    batch = load_file(FIXTURES / "llama" / "expected.safetensors")
    model = load_model(FIXTURES / "llama")
    round_outputs(model, torch.bfloat16)
    held = list(model.parameters())
    masters = [nn.Parameter(p.detach().clone()) for p in held]
    optimizer = torch.optim.AdamW([{"params": [p for p in masters if p.dim() >= 2], "weight_decay": DECAY},
                                   {"params": [p for p in masters if p.dim() < 2], "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.95), eps=1e-3)
    lines = [f"# torch {torch.__version__}; lr={LR!r} clip={CLIP!r} weight_decay={DECAY!r}", "loss,norm"]
    for _ in range(STEPS):
        with torch.no_grad():
            for p, master in zip(held, masters):
                p.copy_(master.bfloat16().float())
        model.zero_grad()
        loss = loss_of(model(input_ids=batch["input_ids"].long()).logits, batch["targets"])
        loss.backward()
        for p, master in zip(held, masters):
            master.grad = p.grad.clone()
        norm = nn.utils.clip_grad_norm_(masters, CLIP)
        optimizer.step()
        lines.append(f"{loss.item()!r},{norm.item()!r}")
    OUT.write_text("\n".join(lines) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
