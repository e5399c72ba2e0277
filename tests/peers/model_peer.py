"""What Hugging Face transformers makes of a model directory that Sextant wrote.

  model_peer.py loss     DIR ids.json               prints {"loss", "logits_sum", "targets"} as JSON
  model_peer.py generate DIR ids.json --tokens N    prints {"ids"}: greedy continuations, new tokens only
  model_peer.py compare  DIR ours.safetensors       holds our logits, loss and gradients against transformers';
                         [DIR ours.safetensors ...] several at once, because starting takes longest

ids.json is a list of equally long rows of token ids, where each token's target is the next one in its row, or an object
{"input_ids": rows, "targets": rows} whose targets stand under the position that predicts them (-100: ignored).
ours.safetensors has the names of tests/fixtures/models/*/expected.safetensors: input_ids, targets, logits, loss,
grad.<parameter>, and optionally z_loss (the coefficient that the loss was computed with).
transformers runs in fp32 as it comes. Exit code 1: the two differ; 2: the request makes no sense.
"""
import argparse
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a directory is given; nothing may be fetched
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

import deepseek_moe  # noqa: F401: what transformers lacks

IGNORED = -100
TOLERANCE = 1e-5  # of the L2 norm of a tensor
GRADIENT_FLOOR = 1e-4  # a gradient smaller than this part of all gradients together is measured against that part
ZERO_GRADIENT = 1e-6  # one smaller than this part is all rounding (a bias of keys, which softmax does not see)
ZERO_FLOOR = 1e-2  # and is measured against this part


def load_model(directory):
    if not os.path.isfile(os.path.join(directory, "config.json")):
        raise ValueError(f"{directory} is not a model directory: it has no config.json")
    transformers_logging.disable_progress_bar()
    model, info = AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, local_files_only=True, output_loading_info=True)
    for fault in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[fault]:
            raise ValueError(f"{directory}: {fault} for transformers: {sorted(info[fault])}")
    return model.eval()


# Where transformers calls a parameter other than the files do.
FILE_NAMES = {"gpt_neox": {"lm_head.weight": "embed_out.weight"}}


def loss_of(logits, targets, z_loss=0.0):
    """Mean cross-entropy over the targets that count, plus z_loss times the mean of log-sum-exp squared over them."""
    flat, wanted = logits.flatten(0, 1), targets.flatten().long()
    loss = F.cross_entropy(flat, wanted, ignore_index=IGNORED)
    if z_loss:
        loss = loss + z_loss * torch.logsumexp(flat[wanted != IGNORED], -1).square().mean()
    return loss


# The names of an expert's gate, up and down in files, and what files call the module that has them.
EXPERT_NAMES = {"mixtral": ("w1", "w3", "w2", ".block_sparse_moe."), "olmoe": ("gate_proj", "up_proj", "down_proj", ".mlp."),
                **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe"), ("gate_proj", "up_proj", "down_proj", ".mlp.")),
                "qwen2_moe": ("gate_proj", "up_proj", "down_proj", ".mlp."), "qwen3_moe": ("gate_proj", "up_proj", "down_proj", ".mlp.")}


def in_file(model, name, tensor):
    """The tensors of a file that a parameter of transformers is, by name: files hold experts one by one."""
    model_type = model.config.model_type
    if model_type not in EXPERT_NAMES:
        return {FILE_NAMES.get(model_type, {}).get(name, name): tensor}
    gate, up, down, module = EXPERT_NAMES[model_type]
    name = name.replace(".mlp.", module)
    prefix = name.rsplit(".", 1)[0]
    if name.endswith("experts.down_proj"):
        return {f"{prefix}.{e}.{down}.weight": part for e, part in enumerate(tensor)}
    if name.endswith("experts.gate_up_proj"):
        halves = [part.chunk(2) for part in tensor]
        return {f"{prefix}.{e}.{part}.weight": pair[i] for e, pair in enumerate(halves) for i, part in enumerate((gate, up))}
    return {name: tensor}


def forward_backward(model, input_ids, targets, z_loss=0.0):
    """Logits, loss and grad.<name> of every tensor of the file, as one dictionary of tensors. The loss of a model with
    experts has the one that balances them in it."""
    model.zero_grad(set_to_none=True)
    balance = getattr(model.config, "router_aux_loss_coef", 0.0)
    asked = {"output_router_logits": True} if balance else {}
    output = model(input_ids=input_ids.long(), use_cache=False, **asked)
    loss = loss_of(output.logits, targets, z_loss)
    if balance:
        loss = loss + balance * output.aux_loss
    loss.backward()
    results = {"logits": output.logits.detach(), "loss": loss.detach().reshape(1)}
    for name, parameter in model.named_parameters():
        for part, gradient in in_file(model, name, parameter.grad.detach()).items():
            results["grad." + part] = gradient.clone()
    return results


def deviations(ours, truth):
    """Per name: ||ours - truth|| over what the tolerance is a part of. The rule of all of Sextant's model tests:
    ||a - b|| <= 1e-5 max(||b||, 1e-4 ||all gradients||), the second term for gradients only."""
    gradients = [t.double().norm() for name, t in truth.items() if name.startswith("grad.")]
    all_gradients = torch.stack(gradients).norm() if gradients else 0.0
    result = {}
    for name, b in truth.items():
        scale = b.double().norm()
        if name.startswith("grad."):
            floor = ZERO_FLOOR if scale < ZERO_GRADIENT * all_gradients else GRADIENT_FLOOR
            scale = max(scale, floor * all_gradients)
        difference = (ours[name].double() - b.double()).norm()
        result[name] = (difference / scale).item() if difference > 0 else difference.item()
    return result


def read_ids(path):
    with open(path) as file:
        given = json.load(file)
    if isinstance(given, dict):
        return torch.tensor(given["input_ids"]), torch.tensor(given["targets"])
    rows = torch.tensor(given)
    return rows[:, :-1], rows[:, 1:]


def loss_command(model, arguments):
    input_ids, targets = read_ids(arguments.file)
    with torch.no_grad():
        logits = model(input_ids=input_ids, use_cache=False).logits
    count = int((targets != IGNORED).sum())
    print(json.dumps({"loss": loss_of(logits, targets).item(), "logits_sum": logits.double().sum().item(),
                      "targets": count}))
    return 0


def generate_command(model, arguments):
    with open(arguments.file) as file:
        given = json.load(file)
    prompt = torch.tensor(given["input_ids"] if isinstance(given, dict) else given)
    model.generation_config.eos_token_id = None  # exactly --tokens tokens, whatever they are
    ids = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, pad_token_id=0,
                         max_new_tokens=arguments.tokens)
    print(json.dumps({"ids": ids[:, prompt.shape[1]:].tolist()}))
    return 0


def compare_command(model, arguments):
    results = [compare(model, arguments.file, arguments.tolerance)]
    for directory, file in zip(arguments.more[::2], arguments.more[1::2], strict=True):
        results.append(compare(load_model(directory), file, arguments.tolerance))
    return max(results)


def compare(model, file, tolerance):
    print(model.config.model_type)
    ours = load_file(file)
    z_loss = ours["z_loss"].item() if "z_loss" in ours else 0.0
    truth = forward_backward(model, ours["input_ids"], ours["targets"], z_loss)
    missing = sorted(set(truth) - set(ours))
    unknown = sorted(set(ours) - set(truth) - {"input_ids", "targets", "z_loss"})
    misshapen = [name for name in truth if name in ours and ours[name].shape != truth[name].shape]
    for complaint, names in (("missing", missing), ("unknown", unknown), ("misshapen", misshapen)):
        for name in names:
            print(f"{complaint:10} {name}")
    if missing or unknown or misshapen:
        return 1
    found = deviations(ours, truth)
    # "not <=" rather than ">": a NaN must fail.
    wrong = [name for name, deviation in found.items() if not deviation <= tolerance]
    for name, deviation in found.items():
        print(f"{'WRONG' if name in wrong else 'ok':6}{deviation:10.2e}  {name}")
    print(f"{len(found) - len(wrong)} of {len(found)} tensors within {tolerance:.0e} of transformers; "
          f"worst {max(found.values()):.2e}")
    return 1 if wrong else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    for name, command in (("loss", loss_command), ("generate", generate_command), ("compare", compare_command)):
        verb = verbs.add_parser(name)
        verb.set_defaults(command=command)
        verb.add_argument("directory")
        verb.add_argument("file")
        if name == "generate":
            verb.add_argument("--tokens", type=int, default=16)
        if name == "compare":
            verb.add_argument("more", nargs="*")
            verb.add_argument("--tolerance", type=float, default=TOLERANCE)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        return arguments.command(load_model(arguments.directory), arguments)
    except (OSError, ValueError, KeyError) as error:
        print(f"model_peer.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
