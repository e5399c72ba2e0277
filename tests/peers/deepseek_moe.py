"""DeepSeekMoE (model_type "deepseek") for transformers, which has no class of it: a Llama in which MLPs behind the first
layers are experts, written from the paper (arXiv 2401.06066, section 3). Importing it makes transformers know the type.
"""
import torch
import torch.nn.functional as F
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


class DeepseekConfig(LlamaConfig):
    model_type = "deepseek"
    n_routed_experts: int = 64
    n_shared_experts: int = 2
    num_experts_per_tok: int = 6
    moe_intermediate_size: int = 1408
    first_k_dense_replace: int = 1
    norm_topk_prob: bool = False


class Mlp(nn.Module):
    def __init__(self, hidden, width):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, width, bias=False)
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """Every expert sees every token; those that a token does not go to weigh 0."""

    def __init__(self, config):
        super().__init__()
        hidden, width = config.hidden_size, config.moe_intermediate_size
        self.gate = nn.Linear(hidden, config.n_routed_experts, bias=False)
        self.experts = nn.ModuleList(Mlp(hidden, width) for _ in range(config.n_routed_experts))
        self.shared_experts = Mlp(hidden, config.n_shared_experts * width)
        self.per_token, self.normalise = config.num_experts_per_tok, config.norm_topk_prob

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        best, chosen = scores.topk(self.per_token, -1)
        if self.normalise:
            best = best / best.sum(-1, keepdim=True)
        weights = torch.zeros_like(scores).scatter(-1, chosen, best)
        routed = sum(weights[..., e:e + 1] * expert(x) for e, expert in enumerate(self.experts))
        return routed + self.shared_experts(x)


class DeepseekForCausalLM(LlamaForCausalLM):
    config_class = DeepseekConfig

    def __init__(self, config):
        super().__init__(config)
        for layer in self.model.layers[config.first_k_dense_replace:]:
            layer.mlp = Experts(config)


AutoConfig.register("deepseek", DeepseekConfig)
AutoModelForCausalLM.register(DeepseekConfig, DeepseekForCausalLM)
