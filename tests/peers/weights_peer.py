"""Files of weights as PyTorch and transformers make and read them.

  weights_peer.py save  (DIR OUT)...          the model of DIR in OUT, with pytorch_model.bin
  weights_peer.py check (DIR EXPORT DTYPE)... EXPORT holds the weights of DIR as .to(DTYPE) rounds them, bit for bit, in
                                              the same class, and transformers loads it in that type; DTYPE is f32,
                                              bf16 or f16
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file

import deepseek_moe  # noqa: F401: what transformers lacks

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
TORCH_FILE = "pytorch_model.bin"
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


def save(directory, out):
    pathlib.Path(out).mkdir(parents=True)
    shutil.copy(pathlib.Path(directory) / "config.json", out)
    # Under the names of the file: some classes have others in memory.
    torch.save(load_file(pathlib.Path(directory) / "model.safetensors"), pathlib.Path(out) / TORCH_FILE)


def shifted(model_type, name):
    """Gemma and Nemotron files hold the weights of norms less 1: what is rounded there is not what memory holds."""
    return model_type in ("gemma", "nemotron") and "norm" in name and name.endswith("weight")


def check(directory, export, dtype_name):
    dtype = DTYPES[dtype_name]
    before = torch.load(pathlib.Path(directory) / TORCH_FILE, weights_only=True)
    after = transformers.AutoModelForCausalLM.from_pretrained(export, dtype="auto")
    wrong = []
    if after.dtype != dtype:
        wrong.append(f"loaded as {after.dtype}")
    for key in ("model_type", "architectures", "sliding_window"):
        of = [json.loads((pathlib.Path(d) / "config.json").read_text()).get(key) for d in (directory, export)]
        if of[0] != of[1]:
            wrong.append(f"{key} is {of[1]}, was {of[0]}")
    file = load_file(pathlib.Path(export) / "model.safetensors")
    for name, tensor in file.items():
        # What transformers keeps in f32 whatever the rest is.
        wanted = torch.float32 if name.endswith("e_score_correction_bias") else dtype
        expected = before[name].to(wanted)
        if shifted(after.config.model_type, name):
            same = tensor.dtype == dtype and torch.allclose(tensor.float(), expected.float(), rtol=1e-2, atol=1e-6)
        else:
            same = tensor.dtype == wanted and torch.equal(tensor.view(BITS[wanted]), expected.view(BITS[wanted]))
        if not same:
            wrong.append(f"{name} differs")
    if set(file) != set(before):
        wrong.append(f"other tensors: {sorted(set(file) ^ set(before))}")
    print(f"{after.config.model_type:12} {dtype_name:5} {len(file)} tensors  {'; '.join(wrong) or 'ok'}")
    return not wrong


def main():
    transformers.utils.logging.disable_progress_bar()
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "save":
        for pair in zip(arguments[::2], arguments[1::2], strict=True):
            save(*pair)
        return 0
    results = [check(*three) for three in zip(arguments[::3], arguments[1::3], arguments[2::3], strict=True)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
