"""Writes tests/fixtures/expert_files: what transformers itself makes of experts and of quantised weights.

  mixtral/ olmoe/ qwen2moe/ qwen3moe/ deepseekv2/ deepseekv3/
                              the models of tests/fixtures/models with the experts of a layer as two tensors
                              (save_pretrained with save_original_format=False)
  mxfp4.safetensors           all codes with scales 0, 127 and 254 as experts of gpt-oss are stored, and what
                              transformers dequantises them to
  fp8.safetensors             a matrix in blocks of 128 x 128 of which the last are smaller, its scales, and their product
"""
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
from transformers.utils import logging as transformers_logging

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
OUT = FIXTURES / "expert_files"
STACKED = ("mixtral", "olmoe", "qwen2moe", "qwen3moe", "deepseekv2", "deepseekv3")


def stacked(name):
    shutil.rmtree(OUT / name, ignore_errors=True)
    AutoModelForCausalLM.from_pretrained(FIXTURES / "models" / name).save_pretrained(OUT / name, save_original_format=False)
    (OUT / name / "generation_config.json").unlink(missing_ok=True)


def mxfp4():
    """One expert of three rows, each with another scale: 32 numbers in which every code stands twice."""
    codes = torch.arange(16, dtype=torch.uint8).repeat(2)
    packed = codes[0::2] | (codes[1::2] << 4)
    blocks = packed.expand(1, 3, 1, 16).contiguous()
    scales = torch.tensor([0, 127, 254], dtype=torch.uint8).reshape(1, 3, 1)
    values = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)  # [experts, columns, rows]
    save_file({"w_blocks": blocks, "w_scales": scales, "expected": values.transpose(1, 2).contiguous()},
              OUT / "mxfp4.safetensors")


def fp8():
    generator = torch.Generator().manual_seed(7)
    rows, columns = 130, 260
    weight = (torch.randn(rows, columns, generator=generator) * 40).to(torch.float8_e4m3fn)
    weight.view(-1)[:256] = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)  # every code, both NaNs too
    scales = torch.rand(2, 3, generator=generator) * 0.1
    blocks = scales.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :columns]
    save_file({"w": weight, "w_scale_inv": scales, "expected": weight.float() * blocks}, OUT / "fp8.safetensors")


if __name__ == "__main__":
    transformers_logging.disable_progress_bar()
    OUT.mkdir(exist_ok=True)
    for model in STACKED:
        stacked(model)
    mxfp4()
    fp8()
