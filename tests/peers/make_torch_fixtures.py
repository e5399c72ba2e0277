"""Writes tests/fixtures/torch: small files of torch.save, and what PyTorch reads from them.

  tensors.bin, tensors.safetensors   the same tensors: every type and kind of view (transposed, sliced, tied), a
                                     parameter, _metadata; contiguous in the safetensors file
  protocol4.bin                      the same dictionary in pickle protocol 4
  no_crc.bin                         one tensor, in an archive without checksums
  legacy.bin                         one tensor, in the format before PyTorch 1.6
  float8.bin                         one tensor of fp8
  expanded.bin                       a view of more elements than its storage has
  conversions.safetensors            f32 values, and what .to(bfloat16) and .to(float16) make of them
  gpt2/                              a model as files of 2019 are: names without "transformer.", masks among the
                                     weights, the tied head; pytorch_model.bin and model.safetensors
  llama/                             a model in bf16; pytorch_model.bin in two shards with an index, and
                                     model.safetensors

The fuzz seed tests/fuzz/seeds/torch_data.pkl is data.pkl of tensors.bin.
"""
import json
import math
import pathlib
import shutil
import zipfile
from collections import OrderedDict

import torch
import transformers
from safetensors.torch import save_file
from torch.serialization import set_crc32_options

TESTS = pathlib.Path(__file__).resolve().parent.parent
OUT = TESTS / "fixtures" / "torch"


def views():
    generator = torch.Generator().manual_seed(3)
    base = torch.randn(6, 10, generator=generator)
    cube = torch.randn(2, 3, 4, generator=generator)
    tensors = OrderedDict()
    tensors["f32"] = torch.randn(5, 7, generator=generator)
    tensors["f16"] = torch.randn(9, generator=generator).half()
    tensors["bf16"] = torch.randn(3, 3, generator=generator).bfloat16()
    tensors["f64"] = torch.randn(4, generator=generator, dtype=torch.float64)
    tensors["i64"] = torch.arange(-3, 5)
    tensors["i32"] = torch.arange(6, dtype=torch.int32)
    tensors["i16"] = torch.arange(6, dtype=torch.int16)
    tensors["i8"] = torch.arange(-4, 4, dtype=torch.int8)
    tensors["u8"] = torch.arange(7, dtype=torch.uint8)
    tensors["u16"] = torch.arange(7, dtype=torch.int32).to(torch.uint16)
    tensors["bool"] = torch.tensor([True, False, True])
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.zeros(0, 4)
    tensors["base"] = base
    tensors["tied"] = base
    tensors["transposed"] = base.t()
    tensors["rows"] = base[2:4]
    tensors["columns"] = base[:, 3:6]
    tensors["every_other"] = base[::2, ::3]
    tensors["permuted"] = cube.permute(2, 0, 1)
    tensors["one_row"] = cube.permute(1, 0, 2)[:1]
    tensors["half_transposed"] = torch.randn(3, 5, generator=generator).half().t()
    tensors["parameter"] = torch.nn.Parameter(torch.randn(4, generator=generator))
    tensors._metadata = OrderedDict([("", {"version": 1}), ("layer", {"version": 2})])
    return tensors


def contiguous(tensors):
    return {name: t.detach().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}


def make_tensors():
    tensors = views()
    torch.save(tensors, OUT / "tensors.bin")
    torch.save(tensors, OUT / "protocol4.bin", pickle_protocol=4)
    save_file(contiguous(tensors), OUT / "tensors.safetensors")
    seed = zipfile.ZipFile(OUT / "tensors.bin").read("tensors/data.pkl")
    (TESTS / "fuzz" / "seeds" / "torch_data.pkl").write_bytes(seed)
    one = {"w": torch.arange(4.0)}
    set_crc32_options(False)
    torch.save(one, OUT / "no_crc.bin")
    set_crc32_options(True)
    torch.save(one, OUT / "legacy.bin", _use_new_zipfile_serialization=False)
    torch.save({"w": torch.ones(4).to(torch.float8_e4m3fn)}, OUT / "float8.bin")
    torch.save({"w": torch.ones(1).expand(1000, 1000)}, OUT / "expanded.bin")


def make_conversions():
    generator = torch.Generator().manual_seed(4)
    bits = torch.randint(-(2**31), 2**31, (1500,), generator=generator, dtype=torch.int64).to(torch.int32)
    any_float = bits.view(torch.float32)
    exponents = torch.randint(-30, 17, (1500,), generator=generator)
    usual = torch.randn(1500, generator=generator) * 2.0 ** exponents
    ties = torch.arange(-500, 500) * 2.0**-25  # half-way between numbers of f16, the smallest among them
    values = torch.cat([any_float[any_float.isfinite()], usual, ties, torch.tensor([65504.0, 65519.9, 65520.0, -1e30])])
    save_file({"f32": values, "bf16": values.to(torch.bfloat16), "f16": values.to(torch.float16)},
              OUT / "conversions.safetensors")


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise / math.sqrt(parameter.shape[-1]) if parameter.dim() == 2 else 1 + 0.3 * noise)


def make_model(name, config, dtype):
    directory = OUT / name
    shutil.rmtree(directory, ignore_errors=True)
    model = transformers.AutoModelForCausalLM.from_config(config)
    randomise(model, 6)
    model = model.to(dtype)
    model.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    return directory, model.state_dict()


def make_gpt2():
    config = transformers.GPT2Config(n_layer=2, n_embd=8, n_head=2, n_positions=16, vocab_size=19, bos_token_id=0,
                                     eos_token_id=0)
    directory, state = make_model("gpt2", config, torch.float32)
    old = OrderedDict((name.removeprefix("transformer."), tensor) for name, tensor in state.items())
    for layer in range(config.n_layer):
        old[f"h.{layer}.attn.bias"] = torch.ones(16, 16, dtype=torch.uint8).tril()[None, None]
        old[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(old, directory / "pytorch_model.bin")


def make_llama():
    config = transformers.LlamaConfig(num_hidden_layers=2, hidden_size=8, num_attention_heads=2, num_key_value_heads=1,
                                      intermediate_size=12, max_position_embeddings=16, vocab_size=19, bos_token_id=0,
                                      eos_token_id=0)
    directory, state = make_model("llama", config, torch.bfloat16)
    names = list(state)
    shards = [names[: len(names) // 2], names[len(names) // 2:]]
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        file = f"pytorch_model-{number:05}-of-{len(shards):05}.bin"
        torch.save(OrderedDict((name, state[name]) for name in shard), directory / file)
        weight_map.update({name: file for name in shard})
    size = sum(tensor.nbytes for tensor in state.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    transformers.utils.logging.disable_progress_bar()
    make_tensors()
    make_conversions()
    make_gpt2()
    make_llama()


if __name__ == "__main__":
    main()
