#include "app/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <string_view>

namespace sextant {

namespace {

// The options are separated by blanks; "VERB/--option" is for that verb alone and goes before "--option".
struct OptionFormat {
  std::string_view placeholder, phrase, options;
};

// The phrase is what is counted. A number that is not listed is N.
constexpr std::array kNumbers{
    OptionFormat{"RANKS", "ranks", "--ranks --mpi --ranks-per-node"},
    OptionFormat{"STEP", "", "--profile --until replay/--step data_trace/--step"},
    OptionFormat{"SECONDS", "seconds", "--backoff --stale --start-limit --replay-limit --burn --stop-after --seconds"},
    OptionFormat{"MINUTES", "minutes", "--interval --minutes"},
    OptionFormat{"DAYS", "days", "--days"},
    OptionFormat{"DEVICES", "devices", "--devices ask_devices/--most"},
    OptionFormat{"DOLLARS", "dollars", "--price"},
    OptionFormat{"RUNS", "runs", "--jobs"},
    OptionFormat{"FAILURES", "failures", "--retries"},
    OptionFormat{"SHARE", "", "--jitter --slow-link --top-p --tolerance"},
    OptionFormat{"FACTOR", "", "--straggler --imbalance --halving bench_comm/--step"},
    OptionFormat{"TOKENS", "tokens", "--max-tokens --vocab --tokens"},
    OptionFormat{"POSITIONS", "positions", "--context --prompt --length"},
    OptionFormat{"TEXTS", "texts", "generate/--samples"},
    OptionFormat{"SAMPLES", "samples", "data_order/--samples"},
    OptionFormat{"SENTENCES", "sentences", "--check-stories"},
    OptionFormat{"THREADS", "threads", "--threads"},
    OptionFormat{"CORES", "cores", "--cpus-per-rank"},
    OptionFormat{"GPUS", "GPUs", "--gpus-per-rank"},
    OptionFormat{"LAYOUTS", "layouts", "--layouts"},
    OptionFormat{"LAYER", "", "--layer"},
    OptionFormat{"STEPS", "steps", "--window"},
    OptionFormat{"COLUMNS", "columns", "--width"},
    OptionFormat{"PORT", "", "--port"},
    OptionFormat{"SEED", "", "--seed"},
    OptionFormat{"ID", "", "--end-of-text"},
    OptionFormat{"EXPERTS", "experts", "--experts --per-token"},
    OptionFormat{"HEADS", "heads", "--heads"},
    OptionFormat{"MIB", "MiB", "--mb"},
    OptionFormat{"GB", "gigabytes", "--gb"},
    OptionFormat{"BYTES", "bytes", "--min --max"},
    OptionFormat{"CALLS", "calls", "--calls"},
};

constexpr std::array kTexts{
    OptionFormat{"CONFIG", "the path of a run's TOML file", "config --config"},
    OptionFormat{"KEY=VALUE", "key=value, such as train.steps=50", "overrides --set --against"},
    OptionFormat{"KEY=VALUE", "key=value, such as mesh.tp=2", "replay/overrides replay/--against"},
    OptionFormat{"KEY=VALUES", "key=value,value, such as optimizer.lr=1e-3,3e-3", "values --vary"},
    OptionFormat{"SIZE[=VALUES]", "the name of a size, alone or with values, such as ffn=192,256",
                 "bench_sizing/--vary"},
    OptionFormat{"LIMIT", "key=value,value, such as tp=4,8", "--only"},
    OptionFormat{"NAME", "a part of the name of an op", "bench_ops/--only"},
    OptionFormat{"CHANGE", "key=value,value, such as devices=64,128", "--change"},
    OptionFormat{"RUN", "the --out directory of a run", "run directories log/directory"},
    OptionFormat{"MODEL", "the --out directory of a run, a checkpoint or a Hugging Face directory",
                 "generate/directory --from-model"},
    OptionFormat{"MODEL", "the path of a run's TOML file, or the name of a preset", "model"},
    OptionFormat{"NAME", "the name of a preset (sextant list models)", "--preset"},
    OptionFormat{"DIR", "a directory", "--out directory --tensorboard --all"},
    OptionFormat{"FILE", "the name of a file to write",
                 "--trace --timeline --memory-timeline --mesh --write --schedule-csv --csv --html --save "
                 "new/--out data_tokenize/--out data_train-tokenizer/--out"},
    OptionFormat{"FILE", "a file of bench --json", "file before after"},
    OptionFormat{"FILE", "a hostfile", "--hosts"},
    OptionFormat{"FILE", "a CSV file", "--fit --validate"},
    OptionFormat{"FILE", "a tokenizer.json", "--tokenizer"},
    OptionFormat{"PATH", "a file or a folder", "inputs path --from-text"},
    OptionFormat{"PATH", "the path of a program", "--binary"},
    OptionFormat{"FAULT", "a number that an op makes NaN, nan_op=OP@STEP[:RANK]", "replay/--inject"},
    OptionFormat{"FAULT", "a fault, KIND@STEP[:RANK], such as kill@30:1", "--inject"},
    OptionFormat{"LOW:HIGH[:STEPS]", "two learning rates, LOW:HIGH[:STEPS], such as 1e-6:1:100", "--find-lr"},
    OptionFormat{"WORD", "a word for mpirun or srun", "--launcher-arg"},
    OptionFormat{"TEXT", "a text", "--prompt --note"},
    OptionFormat{"TOKEN", "a token of the tokenizer", "--stop"},
    OptionFormat{"MACHINE", "the name of a machine (sextant list machines) or a TOML file", "--machine"},
    OptionFormat{"SOFTWARE", "the name of a software profile (sextant list software)", "--software"},
    OptionFormat{"BALANCE", "balanced, a ratio of at least 1, or a metrics.jsonl", "--imbalance"},
    OptionFormat{"SHARE", "a percentage, such as 5%", "--headroom"},
    OptionFormat{"NAME", "the name of a published run (sextant plan --published lists them)", "--published"},
    OptionFormat{"TOKENS", "a number of tokens, such as 300M or 1.4T", "--tokens --inference-tokens"},
    OptionFormat{"FLOPS", "a number of floating-point operations, such as 1e21", "--compute"},
    OptionFormat{"PARAMETERS", "a number of parameters, such as 1B", "--params"},
    OptionFormat{"PASS", "the name of a pass", "--after"},
    OptionFormat{"OP", "the name of an op, such as linear", "--op"},
    OptionFormat{"COLLECTIVE", "the name of a collective, such as all_reduce", "bench_comm/--op"},
    OptionFormat{"ADDRESS", "an address of this machine, such as 0.0.0.0", "--host"},
    OptionFormat{"FIELD", "a field of metrics.jsonl, such as loss", "--field"},
    OptionFormat{"KEY", "a JSON key or the name of a column", "--text-key"},
    OptionFormat{"NAME", "a name", "--name --partition --account --qos --namespace --service-account"},
    OptionFormat{"FEATURES", "features of nodes, such as h100&ib", "--constraint"},
    OptionFormat{"FILE", "the name of a log file, such as %x-%j.log", "--output"},
    OptionFormat{"SOURCE:PATH", "CLAIM:PATH or /DIR:PATH, such as runs:/runs", "--volume"},
    OptionFormat{"KEY=VALUE", "key=value, a label of the nodes", "--node-selector"},
    OptionFormat{"AMOUNT", "an amount of memory, such as 64G", "--memory"},
    OptionFormat{"LIMIT", "a time, as MINUTES, HH:MM:SS or DAYS-HH:MM:SS", "--time"},
    OptionFormat{"IMAGE", "the name of a container image", "--container"},
    OptionFormat{"PLUGIN", "a name that `srun --mpi=list` prints, such as pmix", "--srun-mpi"},
    OptionFormat{"SHAPE", "ROWSxCOLUMNSxDEPTH, such as 4096x4096x1024", "--shape"},
    OptionFormat{"SIZES", "a whole number or START:STOP:STEP",
                 "--m --n --k bench_gemm/--tokens bench_gemm/--hidden bench_gemm/--width"},
    OptionFormat{"TYPE", "one of fp32, tf32, bf16, fp16, fp8", "--type"},
    OptionFormat{"VERB", "the name of a verb", "verb"},
};

bool lists(std::string_view options, const std::string& name) {
  for (size_t at = options.find(name); at != options.npos; at = options.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || options[at - 1] == ' ') && (end == options.size() || options[end] == ' ')) return true;
  }
  return false;
}

template <size_t n>
const OptionFormat* kind_of(const std::array<OptionFormat, n>& kinds, const std::string& option,
                            const std::string& verb) {
  std::string own = verb + "/" + option;
  for (char& c : own)
    if (c == ' ') c = '_';
  for (const std::string& name : {own, option})
    for (const OptionFormat& kind : kinds)
      if (lists(kind.options, name)) return &kind;
  return nullptr;
}

// "1e+06" and "1000000.000000" as "1000000", "1e-06" as "0.000001".
std::string plain_number(const std::string& text) {
  double value = std::strtod(text.c_str(), nullptr);
  constexpr double kExact = 1e15;  // whole numbers that doubles hold
  if (std::abs(value) < kExact && value == std::floor(value)) return fmt::format("{}", static_cast<int64_t>(value));
  if (text.find_first_of(".e") == text.npos) return text;
  std::string decimals = fmt::format("{:.6f}", value);
  return decimals.substr(0, decimals.find_last_not_of('0') + 1);
}

// Like lists of words in CLI11: "{auto,cpu,cuda}".
std::vector<std::string> words_in(const std::string& described) {
  if (!described.starts_with('{')) return {};
  return CLI::detail::split(described.substr(1, described.find('}') - 1), ',');
}

OptionValue number_value(const CLI::Option& option, const std::string& verb, const std::string& type,
                         const std::string& described) {
  const OptionFormat* kind = kind_of(kNumbers, option.get_name(), verb);
  OptionValue value{.placeholder = kind ? std::string(kind->placeholder) : "N",
                    .expected = type.starts_with("FLOAT") ? "a number" : "a whole number",
                    .bounds = bounds_in_words(described),
                    .words = {}};
  if (kind && !kind->phrase.empty()) value.expected += fmt::format(" of {}", kind->phrase);
  if (!value.bounds.empty()) value.expected += " " + value.bounds;
  return value;
}

}  // namespace

std::string bounds_in_words(const std::string& bounds) {
  constexpr double kNoLimit = 1e9;  // a bound that nobody reaches by hand
  if (bounds.starts_with("POSITIVE")) return "above 0";
  static const std::regex ends(R"((-?[0-9.]+(?:e[+-]?[0-9]+)?) (?:to|-) (-?[0-9.]+(?:e[+-]?[0-9]+)?))");
  std::smatch found;
  if (!std::regex_search(bounds, found, ends)) return "";
  if (std::strtod(found[2].str().c_str(), nullptr) >= kNoLimit)
    return fmt::format("of at least {}", plain_number(found[1]));
  return fmt::format("from {} to {}", plain_number(found[1]), plain_number(found[2]));
}

OptionValue value_of(const CLI::Option& option, const std::string& verb_words) {
  if (option.get_expected_max() == 0) return {};
  // CLI11 describes what an option takes as "TEXT:{auto,cpu,cuda}" or "INT:INT in [1 - 1024]".
  std::string described = option.get_type_name();
  size_t colon = described.find(':');
  std::string type = described.substr(0, colon), rest = colon == described.npos ? "" : described.substr(colon + 1);
  if (std::vector<std::string> words = words_in(rest); !words.empty())
    return {.placeholder = fmt::format("{}", fmt::join(words, "|")),
            .expected = fmt::format("one of {}", fmt::join(words, ", ")),
            .bounds = "",
            .words = words};
  if (type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT"))
    return number_value(option, verb_words, type, rest);
  const OptionFormat* kind = kind_of(kTexts, option.get_name(), verb_words);
  if (!kind) return {.placeholder = "VALUE", .expected = "a value", .bounds = "", .words = {}};
  return {
      .placeholder = std::string(kind->placeholder), .expected = std::string(kind->phrase), .bounds = "", .words = {}};
}

}  // namespace sextant
