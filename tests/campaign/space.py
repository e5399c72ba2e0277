"""The space of configurations: architecture x model options x mesh x schedule x optimizer x precision, from which one is drawn.

What architectures and options there are is asked of the program (`sextant list models`); an option that has no values here is an error,
so a new one cannot be left out by accident. Draws are mostly ones that the program takes; it says itself which it does not.
"""
import re
import subprocess
from dataclasses import dataclass, field

from program import CHECKOUT

HEADS = 4
HIDDEN = 32
EXPERTS = 4

# Values of each option of a model: settings without "model.". The first of `latent` is that of the base.
OPTIONS = {
    "rope_scaling": (
        {"rope_scaling.type": "linear", "rope_scaling.factor": 2},
        {"rope_scaling.type": "dynamic", "rope_scaling.factor": 2, "rope_scaling.original_max_positions": 32},
        {"rope_scaling.type": "llama3", "rope_scaling.factor": 4, "rope_scaling.original_max_positions": 16},
        {"rope_scaling.type": "yarn", "rope_scaling.factor": 2, "rope_scaling.original_max_positions": 16},
    ),
    "rope_scaling.mscale_all_dim": (
        {"rope_scaling.type": "yarn", "rope_scaling.factor": 2, "rope_scaling.original_max_positions": 16,
         "rope_scaling.mscale_all_dim": 0.7},
    ),
    "rotary_fraction": ({"rotary_fraction": 0.5}, {"rotary_fraction": 1}),
    "activation": tuple({"activation": name} for name in ("gelu", "gelu_tanh", "quick_gelu", "relu", "relu2", "silu")),
    "norm_placement": ({"norm_placement": "pre-without-final"}, {"norm_placement": "post"}),
    "embedding_width": ({"embedding_width": 16},),
    "qkv_bias": ({"qkv_bias": True}, {"qkv_bias": False}),
    "out_bias": ({"qkv_bias": True, "out_bias": True}, {"out_bias": False}),
    "mlp_bias": ({"mlp_bias": True},),
    "qk_norm": ({"qk_norm": True}, {"qk_norm": False}),
    "window": ({"window": 5}, {"window": 17}),
    "full_attention_first": ({"window": 7, "full_attention_first": 1},),
    "full_attention_every": ({"window": 7, "full_attention_every": 2}, {"window": 6, "full_attention_every": 0}),
    "attention_chunk": ({"attention_chunk": 8}, {"attention_chunk": 0}),
    "temperature_positions": ({"temperature_positions": 8, "temperature_strength": 0.3},),
    "inverse_layer_scaling": ({"inverse_layer_scaling": True},),
    "parallel_residual": ({"parallel_residual": False}, {"parallel_residual": True}),
    "no_rope_every": ({"no_rope_every": 2},),
    "embedding_multiplier": ({"embedding_multiplier": 3},),
    "attention_multiplier": ({"attention_multiplier": 0.25},),
    "residual_multiplier": ({"residual_multiplier": 0.5},),
    "logits_scaling": ({"logits_scaling": 2},),
    "latent": (
        {"head_dim": 12, "latent.q_rank": 16, "latent.kv_rank": 16, "latent.rope_dim": 4, "latent.value_dim": 8},
        {"head_dim": 12, "latent.q_rank": 0, "latent.kv_rank": 8, "latent.rope_dim": 4, "latent.value_dim": 4},
    ),
    "kv_heads": tuple({"kv_heads": heads} for heads in (1, 2, HEADS)),
    "head_dim": ({"head_dim": 16},),
    "experts.ffn": ({"experts.ffn": 24},),
    "experts.normalise": ({"experts.normalise": True}, {"experts.normalise": False}),
    "experts.every": ({"experts.every": 2},),
    "experts.dense_first": ({"experts.dense_first": 1}, {"experts.dense_first": 0}),
    "experts.shared_ffn": ({"experts.shared_ffn": 24},),
    "experts.score": ({"experts.score": "softmax"}, {"experts.score": "sigmoid"}),
    "experts.groups": ({"experts.groups": 2, "experts.keep_groups": 1, "experts.group_top": 1},
                       {"experts.groups": 2, "experts.keep_groups": 2, "experts.group_top": 2},
                       {"experts.groups": 1, "experts.keep_groups": 1}),
    "experts.scale": ({"experts.scale": 1.5},),
    "experts.correction_bias": ({"experts.correction_bias": True, "experts.bias_update_speed": 0.01},
                                {"experts.correction_bias": False, "experts.bias_update_speed": 0}),
    "mtp.depths": ({"mtp.depths": 1}, {"mtp.depths": 2, "mtp.loss_weight": 0.1}),
}

# What every model with experts takes, whether its architecture lists it or not.
EXPERT_OPTIONS = (
    {"experts.balance_loss": 0.02},
    {"experts.balance_loss": 0.02, "experts.balance_scope": "layer"},
    {"experts.balance_loss": 0.02, "experts.balance_scope": "sequence"},
    {"experts.z_loss": 0.01},
    {"experts.drop_above": 1},
    {"experts.drop_above": 1.25, "experts.drop_policy": "position"},
    {"experts.forced_balance": True},
    {"experts.per_token": 1},
    {"experts.count": 8},
)

# Of every model.
COMMON_OPTIONS = ({"tied_head": True}, {"tied_head": False}, {"norm_eps": 1e-6}, {"max_seq": 64}, {"dropout": 0.1},
                  {"attention_dropout": 0.2}, {"init_std": 0.05})

SCHEDULES = {  # chunks of each
    "gpipe": 1, "1f1b": 1, "zb-h1": 1, "combined-1f1b": 1, "interleaved": 2, "breadth-first": 2, "zbv": 2,
    "dualpipev": 2, "dualpipe": 2,
}

OPTIMIZERS = {
    "adamw": ({}, {"optimizer.state": "bf16"}, {"optimizer.state": "int8"}, {"train.master_weights": "bf16"}),
    "sgd": ({}, {"optimizer.momentum": 0}, {"optimizer.nesterov": True}),
    "lion": ({},),
    "adafactor": ({},),
    "muon": ({}, {"optimizer.adjust_lr": "match_rms_adamw"}),
}
RATES = {"adamw": 1e-3, "sgd": 0.01, "lion": 3e-4, "adafactor": 1e-2, "muon": 1e-3}

# How often each precision is drawn.
PRECISIONS = {"f32": 10, "bf16": 3, "fp16": 2, "fp8": 2, "fp8-block": 1}


@dataclass
class Architecture:
    name: str
    options: list
    has_experts: bool


@dataclass
class Configuration:
    """What is drawn: settings of the model and of the step, which one rank has too, and those of the layout, which it has not."""
    architecture: str
    precision: str
    optimizer: str
    same: dict = field(default_factory=dict)
    layout: dict = field(default_factory=dict)
    microbatch: int = 1
    dp: int = 1

    def words(self):
        return words_of({**self.same, **self.layout, "batch.microbatch": self.microbatch})

    def words_of_one_rank(self):
        """The same step on one rank: what ranks of dp, and both directions of dualpipe, do at once it does at once, since losses of
        routers are means over that."""
        directions = 2 if self.layout.get("pipeline.schedule") == "dualpipe" else 1
        return words_of({**self.same, "batch.microbatch": self.microbatch * self.dp * directions})

    def axis(self, name):
        return self.layout.get(f"mesh.{name}", 1)


def words_of(settings):
    def text(value):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return [f"{key}={text(value)}" for key, value in settings.items()]


def architectures(sextant):
    """All that the program lists, with their options."""
    listed = subprocess.run([sextant, "list", "models"], capture_output=True, text=True, check=True).stdout
    listed = listed.split("presets, for model.preset")[0]
    found = []
    for name, options in re.findall(r"^(\w+) +\S[^\n]*\n +positions [^\n;]*; options: ([^;]*);", listed, re.MULTILINE):
        names = [] if options == "none" else options.split(", ")
        unknown = [option for option in names if option not in OPTIONS and option != "experts.swiglu_limit"]
        if unknown:
            raise SystemExit(f"{name} has options without values in {__file__}: {', '.join(unknown)}")
        found.append(Architecture(name, names, takes_experts(sextant, name, names)))
    if not found:
        raise SystemExit(f"`{sextant} list models` lists no architecture in the form that {__file__} reads")
    return found


def takes_experts(sextant, name, options):
    settings = {"model.architecture": name, "model.experts.count": EXPERTS, "model.experts.per_token": 1, **base_model(options, True),
                "batch.seq": 32}
    tried = subprocess.run([sextant, "plan", "configs/tiny-moe.toml", *words_of(settings)], capture_output=True,
                           cwd=CHECKOUT, check=False)
    return tried.returncode == 0


def base_model(options, experts):
    settings = {"model.hidden": HIDDEN, "model.heads": HEADS, "model.kv_heads": HEADS, "model.ffn": 4 * HIDDEN,
                "model.layers": 4}
    if "kv_heads" in options:
        settings["model.kv_heads"] = 2
    if "latent" in options:
        settings.update(of_model(OPTIONS["latent"][0]))
    if experts:
        settings.update({"model.experts.count": EXPERTS, "model.experts.per_token": 2})
        if "experts.groups" in options:
            settings.update(of_model(OPTIONS["experts.groups"][0]))
        if "experts.ffn" in options:
            settings["model.experts.ffn"] = HIDDEN
        if "experts.shared_ffn" in options:
            settings["model.experts.shared_ffn"] = HIDDEN
    return settings


def of_model(option):
    return {f"model.{key}": value for key, value in option.items()}


def draw(chance, known):
    """One configuration. `chance` is a random.Random, `known` what architectures() gave."""
    arch = chance.choice(known)
    optimizer = chance.choices(list(OPTIMIZERS), (5, 2, 1, 2, 2))[0]
    precision = chance.choices(list(PRECISIONS), PRECISIONS.values())[0]
    drawn = Configuration(arch.name, precision, optimizer)
    drawn.same = {"model.architecture": arch.name, **base_model(arch.options, arch.has_experts)}
    draw_model(chance, arch, drawn)
    draw_step(chance, drawn)
    draw_layout(chance, arch, drawn)
    return drawn


def draw_model(chance, arch, drawn):
    options = [option for option in arch.options if option in OPTIONS]
    for name in chance.sample(options, min(len(options), chance.choice((0, 1, 1, 2, 3)))):
        drawn.same.update(of_model(chance.choice(OPTIONS[name])))
    if arch.has_experts:
        for option in chance.sample(EXPERT_OPTIONS, chance.choice((1, 1, 2))):
            drawn.same.update(of_model(option))
    if chance.random() < 0.4:
        drawn.same.update(of_model(chance.choice(COMMON_OPTIONS)))


def draw_step(chance, drawn):
    drawn.same.update({"optimizer.name": drawn.optimizer, "optimizer.lr": RATES[drawn.optimizer],
                       "train.precision": drawn.precision, "batch.seq": chance.choice((16, 32))})
    drawn.same.update(chance.choice(OPTIMIZERS[drawn.optimizer]))
    if drawn.optimizer == "adamw":
        # Where a gradient is all but zero, its rounding error must not become a step of full size.
        drawn.same["optimizer.eps"] = 1e-6
    for setting, share in (({"data.mask_documents": True}, 0.3), ({"optimizer.z_loss": 1e-3}, 0.2), ({"optimizer.clip": 0}, 0.2),
                           ({"train.reproducible": "mesh"}, 0.1), ({"log.tensor_stats_every": 1}, 0.3), ({"train.fp8_skip": 1}, 0.3)):
        if chance.random() < share and ("fp8" not in str(setting) or drawn.precision.startswith("fp8")):
            drawn.same.update(setting)


def draw_layout(chance, arch, drawn):
    """A mesh of 2 to 8 ranks, or one rank with a schedule that one rank has too, and how they share the work."""
    axes = {"dp": 1, "tp": 1, "pp": 1, "cp": 1}
    for _ in range(chance.choice((1, 1, 2, 2, 3))):
        axes[chance.choice(list(axes))] *= 2
    layout = {f"mesh.{name}": size for name, size in axes.items() if size > 1}
    drawn.dp = axes["dp"]
    drawn.microbatch = chance.choice((1, 1, 2))
    schedule = "combined-1f1b" if axes["pp"] == 1 and chance.random() < 0.2 else None
    if axes["pp"] > 1:
        schedule = chance.choice(list(SCHEDULES))
    if schedule:
        layout.update({"pipeline.schedule": schedule, "pipeline.chunks": SCHEDULES[schedule]})
        if schedule in ("zb-h1", "zbv", "dualpipev", "dualpipe") and chance.random() < 0.3:
            layout["pipeline.deferred_gradients"] = "cheap"
    drawn.same["model.layers"] = max(4, axes["pp"] * SCHEDULES.get(schedule, 1))
    drawn.same["batch.sequences"] = drawn.microbatch * drawn.dp * chance.choice((2, 4, max(4, 2 * axes["pp"])))
    draw_sharding(chance, arch, axes, layout)
    layout["train.recompute"] = chance.choice(("none", "none", "norms", "selective", "alternate", "full"))
    if chance.random() < 0.1:
        layout["offload.optimizer"] = True
    drawn.layout = layout


def draw_sharding(chance, arch, axes, layout):
    if axes["dp"] > 1:
        layout["mesh.zero"] = chance.choice((0, 1, 2, 3))
        if layout["mesh.zero"] and axes["dp"] == 4 and chance.random() < 0.3:
            layout["mesh.zero_ranks"] = 2
        layout["mesh.bucket_mb"] = chance.choice((8, 0.01))
        layout["mesh.overlap"] = chance.random() < 0.8
    if axes["tp"] > 1:
        layout["mesh.sequence_parallel"] = chance.random() < 0.5
    if axes["cp"] > 1:
        layout["mesh.context"] = chance.choice(("ring", "ulysses"))
        if layout["mesh.context"] == "ring":
            layout["mesh.ring_order"] = chance.choice(("auto", "zigzag", "striped"))
    if arch.has_experts and axes["dp"] * axes["tp"] * axes["cp"] > 1:
        draw_expert_sharding(chance, axes, layout)


def draw_expert_sharding(chance, axes, layout):
    if axes["tp"] > 1 and chance.random() < 0.5:
        layout["mesh.etp"] = 1
    room = axes["dp"] * axes["cp"] * (axes["tp"] // layout.get("mesh.etp", axes["tp"]))
    layout["mesh.ep"] = chance.choice([size for size in (1, 2, 4) if room % size == 0])
    if layout["mesh.ep"] > 1:
        layout["mesh.expert_dispatch"] = chance.choice(("auto", "rows", "tokens", "gather"))
        if chance.random() < 0.3:
            layout["mesh.expert_capacity"] = 1
