"""Writes tests/fixtures/mtp: a tiny DeepSeek-V3 with two modules of multi-token prediction, and what PyTorch computes.

transformers has the modules for generation only. Here they are made of its decoder layers and norms, and put together by
this script as the DeepSeek-V3 report has them. The directory is one of Hugging Face as DeepSeek released theirs (fp32),
with copies of embedding and head in every module, and expected.safetensors:
  input_ids, targets [2, 24] int32; tokens.K, targets.K of depth K (-100: does not count)
  loss, mtp_loss.K [1], grad.<tensor of the file> of loss + WEIGHT / DEPTHS * sum of mtp_loss.K
  train_losses, train_mtp_losses [20] before each AdamW step on that batch (the latter the mean over depths), and
  param.<tensor of the file> after the last

All numbers are computed in float64 from the fp32 weights and then rounded to fp32.
"""
import json
import pathlib
import shutil

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn
import transformers
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

from make_model_fixtures import (CLIP, TRAINING, WEIGHT_DECAY, Float64Steps, float64_twin, make_batch, randomise, write)
from model_peer import IGNORED, in_file, loss_of

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "mtp"
DEPTHS, WEIGHT, STEPS, SEED = 2, 0.3, 20, 91
CONFIG = dict(
    vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
    max_position_embeddings=64, rms_norm_eps=1e-5, eos_token_id=2, bos_token_id=1, pad_token_id=None, q_lora_rank=24,
    kv_lora_rank=20, qk_nope_head_dim=10, qk_rope_head_dim=6, v_head_dim=12, moe_intermediate_size=16, n_routed_experts=8,
    num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1, n_group=4, topk_group=2, routed_scaling_factor=2.5,
    norm_topk_prob=True, num_nextn_predict_layers=DEPTHS, router_bias_update_speed=0.0)


class Module(nn.Module):
    def __init__(self, config):
        super().__init__()
        make_norm = lambda: deepseek.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.enorm, self.hnorm, self.norm = make_norm(), make_norm(), make_norm()
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = deepseek.DeepseekV3DecoderLayer(config, config.num_hidden_layers)  # behind the dense ones: experts


class Predictor(nn.Module):
    def __init__(self, main):
        super().__init__()
        self.config, self.main = main.config, main
        self.ahead = nn.ModuleList(Module(main.config) for _ in range(DEPTHS))

    def losses(self, batch):
        """The model's own loss, and that of every depth."""
        x = self.main.model(input_ids=batch["input_ids"].long(), use_cache=False).last_hidden_state  # after its norm
        found = [loss_of(self.main.lm_head(x), batch["targets"])]
        length = x.shape[1]
        positions = torch.arange(length)[None]
        mask = torch.full((length, length), float("-inf"), dtype=x.dtype).triu(1)[None, None]
        turns = self.main.model.rotary_emb(x, positions)
        for depth, module in enumerate(self.ahead, 1):
            embedded = self.main.model.embed_tokens(batch[f"tokens.{depth}"].long())
            x = module.eh_proj(torch.cat([module.enorm(embedded), module.hnorm(x)], -1))
            x = module.norm(module.layer(x, attention_mask=mask, position_ids=positions, position_embeddings=turns))
            found.append(loss_of(self.main.lm_head(x), batch[f"targets.{depth}"]))
        return found

    def file_name(self, name):
        if name.startswith("main."):
            return name.removeprefix("main.")
        depth, part = name.removeprefix("ahead.").split(".", 1)
        part = part.removeprefix("layer.")
        return f"model.layers.{self.config.num_hidden_layers + int(depth)}." + (
            "shared_head.norm.weight" if part == "norm.weight" else part)

    def in_files(self, tensors):
        """The tensors of the files, but for the copies, from those of our own names."""
        found = {}
        for name, tensor in tensors.items():
            found.update(in_file(self.main, self.file_name(name), tensor))
        return found


def shifted(batch):
    """What each depth sees and predicts. The last target is known as a token too; behind it stands token 0, uncounted."""
    tokens = torch.cat([batch["input_ids"], batch["targets"][:, -1:].clamp(min=0)], 1)
    for depth in range(1, DEPTHS + 1):
        batch[f"tokens.{depth}"] = F.pad(tokens, (0, depth))[:, depth:depth + batch["input_ids"].shape[1]].contiguous()
        batch[f"targets.{depth}"] = F.pad(batch["targets"][:, depth:], (0, depth), value=IGNORED).contiguous()
    return batch


def float64(predictor):
    twin = Predictor(float64_twin(predictor.main))
    twin.ahead.load_state_dict(predictor.ahead.state_dict())
    return twin.double().eval()


def total(found):
    return found[0] + WEIGHT / DEPTHS * sum(found[1:])


def gradients(predictor, batch):
    predictor.zero_grad(set_to_none=True)
    found = predictor.losses(batch)
    total(found).backward()
    results = {"loss": found[0]} | {f"mtp_loss.{k}": loss for k, loss in enumerate(found[1:], 1)}
    results = {name: loss.detach().reshape(1) for name, loss in results.items()}
    grads = {name: p.grad.detach().clone() for name, p in predictor.named_parameters()}
    return results | {"grad." + name: g.clone() for name, g in predictor.in_files(grads).items()}


def train(predictor, batch):
    decays = lambda p: p.dim() >= 2
    parameters = list(predictor.parameters())
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if decays(p)], "weight_decay": WEIGHT_DECAY},
                                   {"params": [p for p in parameters if not decays(p)], "weight_decay": 0.0}], **TRAINING)
    losses, ahead = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        found = predictor.losses(batch)
        total(found).backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        losses.append(found[0].item())
        ahead.append(sum(found[1:]).item() / DEPTHS)
        optimizer.step()
    after = predictor.in_files({name: p.detach() for name, p in predictor.named_parameters()})
    return {"train_losses": torch.tensor(losses), "train_mtp_losses": torch.tensor(ahead)} | {
        "param." + name: p.clone() for name, p in after.items()}


def save(predictor):
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    predictor.main.save_pretrained(DIRECTORY)
    (DIRECTORY / "generation_config.json").unlink(missing_ok=True)
    path = DIRECTORY / "model.safetensors"
    tensors = load_file(path)
    own = {name: t for name, t in predictor.state_dict().items() if name.startswith("ahead.")}
    tensors |= {name: t.clone() for name, t in predictor.in_files(own).items()}
    for layer in range(CONFIG["num_hidden_layers"], CONFIG["num_hidden_layers"] + DEPTHS):
        tensors[f"model.layers.{layer}.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].clone()
        tensors[f"model.layers.{layer}.shared_head.head.weight"] = tensors["lm_head.weight"].clone()
    save_file({name: t.contiguous() for name, t in tensors.items()}, path, metadata={"format": "pt"})


def main():
    generator = torch.Generator().manual_seed(SEED)
    config = transformers.DeepseekV3Config(**CONFIG)
    predictor = Predictor(transformers.DeepseekV3ForCausalLM(config)).eval()
    randomise(predictor, generator)
    save(predictor)
    input_ids, targets = make_batch(generator)
    batch = shifted({"input_ids": input_ids, "targets": targets})
    with Float64Steps():
        truth = gradients(float64(predictor), batch)
        trained = train(float64(predictor), batch)
    print({name: round(t.item(), 6) for name, t in truth.items() if t.numel() == 1},
          "after 20 steps", trained["train_losses"][-1].item(), trained["train_mtp_losses"][-1].item())
    write(DIRECTORY / "expected.safetensors", batch | truth | trained)
    config_file = DIRECTORY / "config.json"
    print(json.loads(config_file.read_text())["num_nextn_predict_layers"], "depths in", config_file)


if __name__ == "__main__":
    main()
