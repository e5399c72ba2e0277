"""Writes what transformers makes of models with experts at the edges of their configs, for LiveParity.ExpertVariants.

  expert_variants.py OUT    writes OUT/NAME: a model directory as transformers saves it, with expected.safetensors as
                            make_model_fixtures.py has it

Each variant changes the recipe of a fixture of the same family; what it leaves out is missing in its config.json, so
that the defaults of transformers count.
"""
import json
import pathlib
import sys

import torch
import transformers
from transformers.utils import logging as transformers_logging

import deepseek_moe
from make_model_fixtures import FIXTURES, float64_twin, make_batch, randomise, truth_of, write
from model_peer import load_model

# fixture, name of the variant, changed keys
VARIANTS = [
    ("mixtral", "all_experts", {"num_experts_per_tok": 5}),
    ("mixtral", "one_per_token", {"num_experts_per_tok": 1}),
    ("mixtral", "one_expert", {"num_local_experts": 1, "num_experts_per_tok": 1}),
    ("qwen2moe", "normalised", {"norm_topk_prob": True}),
    ("qwen2moe", "all_experts", {"num_experts_per_tok": 6}),
    ("qwen2moe", "one_per_token", {"num_experts_per_tok": 1, "norm_topk_prob": True}),
    ("qwen2moe", "every_second", {"decoder_sparse_step": 2, "num_hidden_layers": 3}),
    ("qwen2moe", "one_dense", {"mlp_only_layers": [1]}),
    ("qwen2moe", "dense_and_every_second", {"decoder_sparse_step": 2, "mlp_only_layers": [1], "num_hidden_layers": 4}),
    ("qwen3moe", "not_normalised", {"norm_topk_prob": False, "mlp_only_layers": []}),
    ("qwen3moe", "every_third", {"decoder_sparse_step": 3, "mlp_only_layers": []}),
    ("qwen3moe", "one_expert", {"num_experts": 1, "num_experts_per_tok": 1, "mlp_only_layers": []}),
    ("olmoe", "normalised", {"norm_topk_prob": True}),
    ("olmoe", "all_experts", {"num_experts_per_tok": 8}),
    ("olmoe", "one_per_token", {"num_experts_per_tok": 1}),
    ("deepseekmoe", "no_dense_layer", {"first_k_dense_replace": 0, "norm_topk_prob": True}),
    ("deepseekmoe", "all_experts", {"num_experts_per_tok": 8, "n_shared_experts": 1}),
    ("deepseekv2", "greedy", {"topk_method": "greedy"}),
    ("deepseekv2", "three_of_four_groups", {"topk_group": 3, "num_experts_per_tok": 5}),
    ("deepseekv2", "three_groups", {"n_routed_experts": 9, "n_group": 3, "topk_group": 1, "num_experts_per_tok": 3}),
    ("deepseekv2", "one_per_token", {"num_experts_per_tok": 1, "first_k_dense_replace": 0}),
    ("deepseekv3", "one_group", {"n_group": 1, "topk_group": 1}),
    ("deepseekv3", "one_of_two_groups", {"n_group": 2, "topk_group": 1}),
    ("deepseekv3", "three_groups", {"n_routed_experts": 9, "n_group": 3, "topk_group": 2, "num_experts_per_tok": 5}),
    ("deepseekv3", "all_groups", {"topk_group": 4, "num_experts_per_tok": 8}),
    ("deepseekv3", "not_normalised", {"norm_topk_prob": False}),
    ("deepseekv3", "one_per_token", {"num_experts_per_tok": 1}),
    ("deepseekv3", "no_dense_layer", {"first_k_dense_replace": 0, "n_shared_experts": 3}),
    ("deepseekv3", "mostly_dense", {"first_k_dense_replace": 2}),
    ("glm4moe", "one_group", {"n_group": 1, "topk_group": 1, "norm_topk_prob": False}),
    ("glm4moe", "no_dense_layer", {"first_k_dense_replace": 0, "n_shared_experts": 1}),
    ("glm4moe", "one_per_token", {"num_experts_per_tok": 1}),
    ("gptoss", "one_per_token", {"num_experts_per_tok": 1}),
    ("gptoss", "all_experts", {"num_experts_per_tok": 6}),
    ("gptoss", "one_expert", {"num_local_experts": 1, "num_experts_per_tok": 1}),
    ("llama4", "two_per_token", {"num_experts_per_tok": 2}),
    ("llama4", "all_experts", {"num_experts_per_tok": 4}),
    ("llama4", "every_second", {"interleave_moe_layer_step": 2}),
    ("llama4", "one_expert", {"num_local_experts": 1}),
]

# Keys that are set to what transformers takes for them, and left out of config.json.
LEFT_OUT = {
    "mixtral": {"router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "sliding_window": None},
    "qwen2moe": {"router_aux_loss_coef": 0.001, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": False,
                 "qkv_bias": True},
    "qwen3moe": {"router_aux_loss_coef": 0.001, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": False,
                 "attention_bias": False},
    "olmoe": {"router_aux_loss_coef": 0.01, "norm_topk_prob": False, "clip_qkv": None},
    "deepseekv2": {"topk_method": "greedy", "n_group": None, "topk_group": None, "routed_scaling_factor": 1.0,
                   "norm_topk_prob": False, "first_k_dense_replace": 0},
    "deepseekv3": {"norm_topk_prob": True, "routed_scaling_factor": 2.5, "n_shared_experts": 1, "n_group": 8,
                   "topk_group": 4, "n_routed_experts": 16, "num_nextn_predict_layers": 0},
    "glm4moe": {"n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 1.0,
                "n_shared_experts": 1, "first_k_dense_replace": 1},
    "llama4": {"num_experts_per_tok": 1, "interleave_moe_layer_step": 1},
}
KEPT = {"n_routed_experts", "num_nextn_predict_layers"}  # the defaults are those of large models


def make(out, fixture, name, changes, left_out=(), tokens=None):
    recipe = json.loads((FIXTURES / fixture / "recipe.json").read_text())
    model_class = getattr(transformers, recipe["class"], None) or getattr(deepseek_moe, recipe["class"])
    config = {**recipe["config"], **changes}
    if "layer_types" in config:  # as many as there are layers
        config["layer_types"] = (config["layer_types"] * 4)[:config["num_hidden_layers"]]
    model = model_class(model_class.config_class(**config)).eval()
    generator = torch.Generator().manual_seed(recipe["seed"] + 1)
    randomise(model, generator)
    directory = out / f"{fixture}-{name}"
    model.save_pretrained(directory)
    path = directory / "config.json"
    written = json.loads(path.read_text())
    for key in left_out:
        written.pop(key, None)
    path.write_text(json.dumps(written))
    input_ids, targets = make_batch(generator)
    if tokens:
        input_ids, targets = input_ids[:1, :tokens], torch.clamp(targets[:1, :tokens], min=0)
    truth = truth_of(float64_twin(load_model(directory)), input_ids, targets)
    write(directory / "expected.safetensors", {"input_ids": input_ids.contiguous(), "targets": targets.contiguous(), **truth})


def main():
    transformers_logging.disable_progress_bar()
    out = pathlib.Path(sys.argv[1])
    for fixture, name, changes in VARIANTS:
        make(out, fixture, name, changes)
    for fixture, defaults in LEFT_OUT.items():
        make(out, fixture, "missing_keys", defaults, left_out=set(defaults) - KEPT)
    for fixture in ("mixtral", "deepseekv2", "deepseekv3", "gptoss", "llama4"):
        make(out, fixture, "one_token", {}, tokens=1)


if __name__ == "__main__":
    main()
