"""Writes what transformers makes of models with windows whose config.json does not list layer_types, for
LiveParity.WindowVariants.

  window_variants.py OUT    writes OUT/NAME as expert_variants.py does

Which layers have the window then follows from a rule of each model type.
"""
import pathlib
import sys

from transformers.utils import logging as transformers_logging

from expert_variants import make

# fixture, name of the variant, changed keys
VARIANTS = [
    ("qwen2_window", "first_two_full", {"max_window_layers": 2, "num_hidden_layers": 4}),
    ("qwen2_window", "all", {"max_window_layers": 0}),
    ("qwen3", "first_full", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1, "num_hidden_layers": 3}),
    ("qwen2moe", "first_of_three", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2,
                                    "num_hidden_layers": 3}),
    ("qwen2moe", "two_of_six", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 4,
                                "num_hidden_layers": 6}),
    ("qwen2moe", "every_other", {"use_sliding_window": True, "sliding_window": 5, "num_hidden_layers": 5}),
    ("qwen3moe", "all", {"use_sliding_window": True, "sliding_window": 5}),
    ("gptoss", "every_other", {"num_hidden_layers": 3}),
]


def main():
    transformers_logging.disable_progress_bar()
    out = pathlib.Path(sys.argv[1])
    for fixture, name, changes in VARIANTS:
        make(out, fixture, name, changes, left_out=["layer_types"])


if __name__ == "__main__":
    main()
