"""PyTorch's side of bench/gpu_fp8_peer.py: linears whose three products take fp8 operands, under torch.compile.

One scale for each tensor, from its own largest magnitude (dynamic scaling): e4m3 for inputs and weights, e5m2 for gradients. Sums are fast in
forward and in f32 in backward, as in Sextant. Scales, casts and transposes are left to the compiler.
"""
import torch
import torch.nn as nn

NARROW, WIDE_RANGE = torch.float8_e4m3fn, torch.float8_e5m2


def quantised(x, dtype):
    """Codes, and what they are multiplied by to get x back."""
    largest = torch.finfo(dtype).max
    amax = x.abs().amax().float().clamp(min=1e-12)
    codes = (x.float() * (largest / amax)).clamp(-largest, largest).to(dtype)
    return codes, amax / largest


def product(a, b, a_scale, b_scale, fast):
    """a·bᵀ of codes that both lie along the sum, which is how the units read them."""
    return torch._scaled_mm(a, b.t(), scale_a=a_scale, scale_b=b_scale, out_dtype=torch.bfloat16, use_fast_accum=fast)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight):
        rows = x.reshape(-1, x.shape[-1])
        codes, scale = quantised(rows, NARROW)
        weight_codes, weight_scale = quantised(weight, NARROW)
        context.save_for_backward(rows, weight)
        return product(codes, weight_codes, scale, weight_scale, True).reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(context, gradient):
        rows, weight = context.saved_tensors
        dy, dy_scale = quantised(gradient.reshape(-1, gradient.shape[-1]), WIDE_RANGE)
        codes, scale = quantised(rows, NARROW)
        weight_codes, weight_scale = quantised(weight, NARROW)
        dx = product(dy, weight_codes.t().contiguous(), dy_scale, weight_scale, False)
        dw = product(dy.t().contiguous(), codes.t().contiguous(), dy_scale, scale, False)
        return dx.reshape(*gradient.shape[:-1], -1), dw


class Fp8Linear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        assert linear.bias is None
        self.weight = linear.weight

    def forward(self, x):
        return Product.apply(x.bfloat16(), self.weight.bfloat16())


def use_fp8(model):
    """The linears of the blocks, as Sextant's train.precision=fp8 has them; head and embedding stay wide."""
    for block in model.blocks:
        for name in ("qkv", "out", "up", "down"):
            setattr(block, name, Fp8Linear(getattr(block, name)))
