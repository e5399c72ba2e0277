#include "app/examples.h"

#include <CLI/CLI.hpp>
#include <array>

#include "base/error.h"

namespace sextant {

namespace {

struct CommandLine {
  std::string_view words, line;
};

// In an order in which they can be run one after the other: a line may read what one above it wrote.
constexpr std::array kExamples{
    CommandLine{"", "sextant train configs/tiny-llama.toml"},
    CommandLine{"", "sextant plan configs/demo.toml --machine h200"},
    CommandLine{"", "sextant help bench gemm"},
    CommandLine{"new", "sextant new --from-text my.txt --out my.toml"},
    CommandLine{"new", "sextant new --preset pythia-70m --out pythia.toml"},
    CommandLine{"train", "sextant train configs/tiny-llama.toml train.steps=20 --out runs/longer"},
    CommandLine{"train", "sextant train configs/tiny-llama.toml mesh.dp=2 --out runs/two-ranks"},
    CommandLine{"train", "sextant train configs/tiny-llama.toml --out runs/rates --find-lr=1e-5:1:40"},
    CommandLine{"train", "mpirun -n 2 sextant train configs/tiny-llama.toml mesh.dp=2 --out runs/two-processes"},
    CommandLine{"run", "sextant run configs/tiny-llama.toml checkpoint.every=2 --out runs/kept --inject kill@5"},
    CommandLine{"sweep", "sextant sweep configs/tiny-llama.toml optimizer.lr=1e-3,3e-3 train.steps=4 --jobs 2"},
    CommandLine{"replay", "sextant replay runs/longer --step 20"},
    CommandLine{"replay", "sextant replay runs/longer --step 20 --bisect --against mesh.tp=2"},
    CommandLine{"generate", "sextant generate runs/tiny-llama --prompt 'One day' --max-tokens 40"},
    CommandLine{"data", "sextant data train-tokenizer my.txt --vocab 512 --out tokenizer.json"},
    CommandLine{"data train-tokenizer", "sextant data train-tokenizer stories --vocab 1024 --out stories.json"},
    CommandLine{"data tokenize", "sextant data tokenize my.txt --tokenizer tokenizer.json --out my.bin"},
    CommandLine{"data inspect", "sextant data inspect my.bin --tokenizer tokenizer.json"},
    CommandLine{"data trace", "sextant data trace runs/longer --step 3"},
    CommandLine{"data order", "sextant data order configs/tiny-llama.toml --samples 8"},
    CommandLine{"plan", "sextant plan configs/demo.toml batch.seq=256"},
    CommandLine{"plan", "sextant plan configs/demo.toml --machine h200 --html plan.html"},
    CommandLine{"plan",
                "sextant plan configs/tiny-llama.toml --machine h100-sxm --search --devices 4 --write best.toml"},
    CommandLine{"plan", "sextant plan --params 1B"},
    CommandLine{"ask", "sextant ask cost gpt2 --machine h200 --devices 8 --tokens 10B --only pp=1 --only tp=1"},
    CommandLine{"ask largest", "sextant ask largest --machine v100-sxm2 --devices 1 batch.seq=2048"},
    CommandLine{"ask devices", "sextant ask devices gpt2 --machine h200 --tokens 300B --days 30 --only tp=1"},
    CommandLine{"ask what-if",
                "sextant ask what-if gpt2 --machine h200 --devices 8 --tokens 10B --only tp=1 --change price=x2"},
    CommandLine{"ask network", "sextant ask network configs/tiny-llama.toml mesh.dp=2 mesh.tp=2 --machine h100-sxm"},
    CommandLine{"ask cost",
                "sextant ask cost gpt2 --machine h200 --devices 8 --tokens 10B --only pp=1 --only tp=1 --price 3"},
    CommandLine{"explain", "sextant explain configs/tiny-llama.toml"},
    CommandLine{"explain", "sextant explain configs/tiny-llama.toml mesh.tp=2 --after infer --layer 0"},
    CommandLine{"explain", "sextant explain configs/tiny-llama.toml --op attention"},
    CommandLine{"launch",
                "sextant launch configs/tiny-llama.toml mesh.dp=2 --slurm --ranks-per-node 2 --time 60 > job.sh"},
    CommandLine{"launch", "sextant launch configs/tiny-llama.toml mesh.dp=2 --mpi --ranks-per-node 2 > run.sh"},
    CommandLine{"bench", "sextant bench gemm --shape 256x256x256 --seconds 0.05 --json > gemm.json"},
    CommandLine{"bench gemm", "sextant bench gemm --shape 256x512x256 --seconds 0.02"},
    CommandLine{"bench gemm", "sextant bench gemm --experts 8 --per-token 2 --tokens 256 --seconds 0.02"},
    CommandLine{"bench memory", "sextant bench memory --mb 4 --seconds 0.01"},
    CommandLine{"bench attention", "sextant bench attention --length 256 --heads 4 --head-dim 32 --tokens 256"},
    CommandLine{"bench ops", "sextant bench ops --only rms_norm --seconds 0.05"},
    CommandLine{"bench ops", "sextant bench ops --config configs/tiny-moe.toml --only expert --seconds 0.05"},
    CommandLine{"bench sizing", "sextant bench sizing configs/tiny-llama.toml --vary ffn=192,256 --seconds 0.05"},
    CommandLine{"bench machine", "sextant bench machine --save this-machine.toml"},
    CommandLine{"bench compare", "sextant bench compare gemm.json gemm.json"},
    CommandLine{"bench report", "sextant bench report gemm.json --html gemm.html"},
    CommandLine{"bench comm", "sextant bench comm --ranks 2 --max 65536 --calls 5"},
    CommandLine{"bench storage", "sextant bench storage . --gb 0.01"},
    CommandLine{"watch", "sextant watch runs"},
    CommandLine{"watch", "sextant watch runs/longer --text --field loss"},
    CommandLine{"watch", "sextant watch runs --html runs.html"},
    CommandLine{"watch", "sextant watch runs --csv runs.csv --field loss"},
    CommandLine{"watch", "sextant watch runs --tensorboard tensorboard"},
    CommandLine{"log", "sextant log runs/longer --note 'lowered the learning rate'"},
    CommandLine{"log", "sextant log runs/longer > chronicle.md"},
    CommandLine{"log", "sextant log runs/longer --html chronicle.html"},
    CommandLine{"compare", "sextant compare runs/longer runs/two-ranks"},
    CommandLine{"list", "sextant list models"},
    CommandLine{"list", "sextant list machines --json"},
    CommandLine{"doctor", "sextant doctor"},
    CommandLine{"help", "sextant help train"},
    CommandLine{"man", "sextant man bench gemm | man -l -"},
    CommandLine{"schema", "sextant schema > config.schema.json"},
    CommandLine{"completions", "sextant completions bash > sextant.bash"},
};

}  // namespace

std::vector<std::string> examples_of(std::string_view words) {
  std::vector<std::string> lines;
  for (const CommandLine& example : kExamples)
    if (example.words == words) lines.emplace_back(example.line);
  BUG_IF(lines.empty(), "there is no example of '{}' in app/examples.cpp", words);
  return lines;
}

namespace {

void add_examples_below(CLI::App& app, const std::string& words) {
  std::vector<std::string> lines = examples_of(words);
  std::string text = lines.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  app.footer(text);
  for (CLI::App* verb : app.get_subcommands(nullptr))
    add_examples_below(*verb, words.empty() ? verb->get_name() : words + " " + verb->get_name());
}

}  // namespace

void add_examples(CLI::App& app) {
  add_examples_below(app, "");
}

}  // namespace sextant
