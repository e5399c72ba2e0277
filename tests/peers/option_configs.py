"""Whether transformers takes models with options as we save them, for SavedModels.TransformersTakesEachOption.

  option_configs.py FILE    FILE has a JSON object a line: {"name", "config": a config.json, "tensors": the names in its files}

Each config.json must give a model that computes logits, whose parameters are those of the files. Exit code 1: some do not.
"""
import json
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

import deepseek_moe  # noqa: F401: what transformers lacks
from model_peer import in_file


def names_in_file(model):
    names = set()
    for name, parameter in model.state_dict(keep_vars=True).items():
        names.update(in_file(model, name, parameter))
    return names


def difference(config, tensors, folder):
    (folder / "config.json").write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).eval()
    if hasattr(model.config, "num_experts_per_tok") and model.config.model_type != "deepseek":
        model.set_experts_implementation("eager")  # grouped products want widths of 16 bytes
    with torch.no_grad():
        logits = model(input_ids=(torch.arange(1, 9) % config["vocab_size"])[None], use_cache=False).logits
    if not torch.isfinite(logits).all():
        return "its logits are not finite"
    theirs = names_in_file(model)
    if config.get("tie_word_embeddings"):
        theirs -= {"lm_head.weight", "embed_out.weight"}
    # Predictors of further tokens, which it leaves alone.
    ours = {name for name in tensors if not any(
        name.startswith(f"model.layers.{config.get('num_hidden_layers', 0) + depth}.")
        for depth in range(config.get("num_nextn_predict_layers") or 0))}
    return "" if theirs == ours else f"only in transformers {sorted(theirs - ours)}, only in ours {sorted(ours - theirs)}"


def main():
    transformers_logging.set_verbosity_error()
    torch.manual_seed(1)
    count = wrong = 0
    with tempfile.TemporaryDirectory() as folder, open(sys.argv[1]) as lines:
        for line in lines:
            case = json.loads(line)
            count += 1
            try:
                what = difference(case["config"], set(case["tensors"]), Path(folder))
            except Exception as error:  # whatever its class raises
                what = f"{type(error).__name__}: {error}"
            if what:
                wrong += 1
                print(f"{case['name']}: {what}")
    print(f"{count - wrong} of {count} models with options are taken by transformers")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
