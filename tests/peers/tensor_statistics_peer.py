"""Statistics of layers as PyTorch's hooks see them, of a model directory and one batch.

  tensor_statistics_peer.py DIR ids.json MICROBATCH    prints JSON: lists by layer, and the two squared gradient norms

ids.json has {"input_ids": rows, "targets": rows}. The loss is the mean over all tokens of the batch. The names are those
of metrics.jsonl (docs/tensors.md). small_squares: the squared norm of the gradient of the first MICROBATCH rows, as the
mean over their own tokens; full_squares: that of all rows.
"""
import json
import math
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
from transformers.models.llama import modeling_llama


def squares(parameters):
    return sum(float((p.grad.double() ** 2).sum()) for p in parameters)


def main():
    directory, ids, microbatch = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3])
    tokens, targets = torch.tensor(ids["input_ids"]), torch.tensor(ids["targets"])
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    layers = model.model.layers
    outputs, logits, read = {}, {}, {}

    def keep(i):
        def hook(module, args, output):
            hidden = output[0] if isinstance(output, tuple) else output
            hidden.retain_grad()
            outputs[i] = hidden
        return hook

    def keep_read(i):
        def hook(module, args):
            args[0].retain_grad()
            read[i].append(args[0])
        return hook

    for i, layer in enumerate(layers):
        layer.register_forward_hook(keep(i))
        read[i] = []
        # What linears read, once where several read the same.
        for linear in (layer.self_attn.q_proj, layer.self_attn.o_proj, layer.mlp.gate_proj, layer.mlp.down_proj):
            linear.register_forward_pre_hook(keep_read(i))

    # The scores themselves have no hook: softmax is called on them, layer by layer.
    softmax, seen = F.softmax, []

    def watched(x, *args, **kwargs):
        seen.append(float(x.detach()[x > -1e30].max()))
        return softmax(x, *args, **kwargs)

    modeling_llama.nn.functional.softmax = watched

    def loss_of(rows):
        out = model(input_ids=tokens[rows]).logits
        return F.cross_entropy(out.reshape(-1, out.shape[-1]), targets[rows].reshape(-1))

    loss_of(slice(0, microbatch)).backward()
    small = squares(model.parameters())
    model.zero_grad()
    outputs.clear()
    for values in read.values():
        values.clear()
    seen.clear()
    loss_of(slice(0, len(tokens))).backward()
    logits = seen[:len(layers)]

    def rms(xs):
        count = sum(x.numel() for x in xs)
        return math.sqrt(sum(float((x.double() ** 2).sum()) for x in xs) / count)

    def most(xs):
        return max(float(x.abs().max()) for x in xs)

    result = {name: [] for name in ("activation_rms", "activation_max", "activation_gradient_rms", "activation_gradient_max",
                                    "gradient_underflow", "inner_gradient_underflow", "gradient_rms", "gradient_max")}
    for i, layer in enumerate(layers):
        hidden = outputs[i]
        gradients = [p.grad for p in layer.parameters()]
        result["activation_rms"].append(rms([hidden.detach()]))
        result["activation_max"].append(most([hidden.detach()]))
        result["activation_gradient_rms"].append(rms([hidden.grad]))
        result["activation_gradient_max"].append(most([hidden.grad]))
        # Rounded by torch itself.
        result["gradient_underflow"].append(float((hidden.grad.half() == 0).float().mean()))
        inner = torch.cat([x.grad.flatten() for x in read[i]])
        result["inner_gradient_underflow"].append(float((inner.half() == 0).float().mean()))
        result["gradient_rms"].append(rms(gradients))
        result["gradient_max"].append(most(gradients))
    result["attention_logit_max"] = logits
    result["small_squares"], result["full_squares"] = small, squares(model.parameters())
    print(json.dumps(result))


main()
