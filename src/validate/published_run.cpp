#include "validate/published_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"
#include "base/program_folder.h"
#include "config/check.h"
#include "config/layout_rules.h"
#include "config/mesh_axes.h"
#include "models/spec.h"

namespace sextant {

namespace {

// The cells of one row, by column name.
class Cells {
 public:
  Cells(const CsvTable& table, const CsvRow& row, std::string_view place) : table_(table), row_(row), place_(place) {}

  std::string text(std::string_view column) const {
    int at = table_.column(column);
    return at < 0 ? std::string() : row_.fields[static_cast<size_t>(at)];
  }

  std::optional<double> number(std::string_view column) const {
    std::string cell = text(column);
    if (cell.empty()) return std::nullopt;
    double value = 0;
    auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(value)) return refused(column, cell);
    return value;
  }

  std::optional<int64_t> count(std::string_view column, int64_t most) const {
    auto value = number(column);
    if (!value) return std::nullopt;
    if (*value < 0 || *value != std::floor(*value)) {
      refused(column, text(column));
      return std::nullopt;
    }
    if (*value > static_cast<double>(most)) too_large(column, text(column), most);
    return static_cast<int64_t>(*value);
  }

  [[noreturn]] void too_large(std::string_view column, const std::string& got, int64_t most) const {
    throw UserError({.place = fmt::format("{}:{} {}", place_, row_.line, column),
                     .got = got,
                     .expected = fmt::format("at most {}", most)});
  }

  const std::string& unreadable() const { return unreadable_; }

 private:
  std::nullopt_t refused(std::string_view column, const std::string& cell) const {
    if (unreadable_.empty()) unreadable_ = fmt::format("{} '{}'", column, cell);
    return std::nullopt;
  }

  const CsvTable& table_;
  const CsvRow& row_;
  std::string_view place_;
  mutable std::string unreadable_;
};

// "trust A", "trust A-", … in the text that says how a row is known.
Grade grade_of(std::string_view how_known) {
  constexpr std::string_view kTrust = "trust ";
  size_t at = how_known.find(kTrust);
  if (at == std::string_view::npos || at + kTrust.size() >= how_known.size()) return Grade::unknown;
  std::string_view rest = how_known.substr(at + kTrust.size());
  if (rest.starts_with("A-")) return Grade::a_minus;
  return rest[0] == 'A' ? Grade::a : rest[0] == 'B' ? Grade::b : rest[0] == 'C' ? Grade::c : Grade::unknown;
}

// "3", or words such as "FSDP (ZeRO-2 like, …)".
std::optional<int64_t> zero_stage(const Cells& cells) {
  std::string cell = cells.text("zero_stage");
  size_t word = cell.find("ZeRO-");
  if (word == std::string::npos) return cells.count("zero_stage", 3);
  char stage = word + 5 < cell.size() ? cell[word + 5] : ' ';
  return stage >= '0' && stage <= '3' ? std::optional<int64_t>(stage - '0') : std::nullopt;
}

// A step is planned microbatch by microbatch.
void require_few_microbatches(const PublishedRun& run, const Cells& cells) {
  int64_t at_once = run.microbatch.value_or(1) * run.size(&MeshSection::dp).value_or(1),
          stages = run.size(&MeshSection::pp).value_or(1) * run.chunks.value_or(1);
  int64_t most = most_microbatches(stages);
  if (run.batch && at_once > 0 && *run.batch / at_once > most)
    cells.too_large("global_batch_seqs", cells.text("global_batch_seqs"), most * at_once);
}

auto sizes_of(const Cells& cells) {
  decltype(PublishedRun::sizes) sizes;
  std::ranges::transform(kMeshAxes, sizes.begin(),
                         [&](const MeshAxis& axis) { return cells.count(axis.name(), kMaxRanks); });
  return sizes;
}

PublishedRun run_of(const Cells& cells, const std::string& file, int line) {
  PublishedRun run{.file = file,
                   .line = line,
                   .source = cells.text("source"),
                   .model = cells.text("model"),
                   .arch = cells.text("arch"),
                   .gpu = cells.text("gpu"),
                   .recompute = cells.text("recompute"),
                   .seq_parallel = cells.text("seq_parallel"),
                   .precision = cells.text("precision"),
                   .schedule = cells.text("schedule"),
                   .how_known = cells.text("how_known"),
                   .shared_experts = cells.text("shared_experts"),
                   .dispatcher = cells.text("dispatcher"),
                   .balance = cells.text("balance"),
                   .layers = cells.count("layers", kMaxLayers),
                   .hidden = cells.count("hidden", kMaxHidden),
                   .heads = cells.count("heads", kMaxHeads),
                   .kv_heads = cells.count("kv_heads", kMaxHeads),
                   .ffn = cells.count("ffn_hidden", kMaxFfn),
                   .vocab = cells.count("vocab", kMaxVocab),
                   .seq = cells.count("seq", kMaxSeq),
                   .gpus = cells.count("n_gpus", kMaxRanks),
                   .gpus_per_node = cells.count("gpus_per_node", kMaxRanks),
                   .sizes = sizes_of(cells),
                   .ep = cells.count("ep", kMaxRanks),
                   .etp = cells.count("etp", kMaxRanks),
                   .chunks = cells.count("vpp", kMaxLayers),
                   .zero = zero_stage(cells),
                   .batch = cells.count("global_batch_seqs", kMaxSequences),
                   .microbatch = cells.count("micro_batch", kMaxMicrobatch),
                   .experts = cells.count("experts", kMaxExperts),
                   .experts_per_token = cells.count("topk", kMaxExperts),
                   .iter_s = cells.number("measured_iter_s"),
                   .tokens_per_s_per_gpu = cells.number("measured_tokens_per_s_per_gpu"),
                   .tflops_per_gpu = cells.number("measured_tflops_per_gpu"),
                   .params_b = cells.number("params_B")};
  run.out_of_memory = cells.text("measured_mem_gb_per_gpu") == "OOM";
  if (!run.out_of_memory) run.memory_gb = cells.number("measured_mem_gb_per_gpu");
  run.grade = grade_of(run.how_known);
  run.unreadable = cells.unreadable();
  require_few_microbatches(run, cells);
  return run;
}

}  // namespace

std::optional<int64_t> PublishedRun::size(int64_t MeshSection::*axis) const {
  return sizes[static_cast<size_t>(&axis_of(axis) - kMeshAxes.data())];
}

std::optional<MeshSection> PublishedRun::mesh() const {
  MeshSection mesh;
  for (const MeshAxis& axis : kMeshAxes) {
    if (axis.always_told && !size(axis.size)) return std::nullopt;
    mesh.*axis.size = size(axis.size).value_or(1);
  }
  return mesh;
}

std::optional<double> PublishedRun::measured_seconds() const {
  if (iter_s) return iter_s;
  if (tokens_per_s_per_gpu && batch && seq && gpus && *tokens_per_s_per_gpu > 0)
    return static_cast<double>(*batch * *seq) / (*tokens_per_s_per_gpu * static_cast<double>(*gpus));
  return std::nullopt;
}

bool PublishedRun::timed() const {
  return how_known.find("derived with ") == std::string::npos &&
         how_known.find("derived assuming ") == std::string::npos;
}

bool PublishedRun::dense() const {
  return arch.find("moe") == std::string::npos && arch.find("mamba") == std::string::npos;
}

bool PublishedRun::has_experts() const {
  return arch.find("moe") != std::string::npos && arch.find("mamba") == std::string::npos &&
         arch.find("hybrid") == std::string::npos;
}

bool PublishedRun::judged() const {
  return grade == Grade::a && dense() && layers && hidden && heads && seq && mesh() && batch && microbatch &&
         measured_seconds();
}

bool PublishedRun::judged_experts() const {
  return grade == Grade::a && has_experts() && layers && hidden && heads && seq && mesh() && batch && microbatch &&
         (measured_seconds() || tflops_per_gpu);
}

std::vector<PublishedRun> parse_published_runs(std::string_view text, std::string_view place) {
  CsvTable table = parse_csv(text, place);
  for (std::string_view needed : {"source", "gpu", "layers", "hidden", "measured_iter_s", "how_known"})
    if (table.column(needed) < 0)
      throw UserError({.place = fmt::format("{}:1", place),
                       .got = fmt::format("no column '{}'", needed),
                       .expected = "the columns of published_runs.csv",
                       .hint = "docs/planning.md lists them"});
  std::vector<PublishedRun> runs;
  std::string file = std::filesystem::path(place).filename().string();
  for (const CsvRow& row : table.rows) runs.push_back(run_of(Cells(table, row, place), file, row.line));
  return runs;
}

namespace {

// The tables that come with the program, in the order of their names.
std::vector<std::filesystem::path> published_tables() {
  namespace fs = std::filesystem;
  fs::path folder = program_folder("data/published");
  std::vector<fs::path> tables;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    if (entry.path().extension() == ".csv") tables.push_back(entry.path());
  if (tables.empty())
    throw UserError({.place = folder.string(),
                     .got = "no table of published runs",
                     .expected = "the .csv files that are installed with the program",
                     .hint = "`sextant validate FILE` takes a table of your own"});
  std::ranges::sort(tables);
  return tables;
}

}  // namespace

std::vector<PublishedRun> read_published_runs(const std::string& file) {
  if (file != kPublishedRuns) return parse_published_runs(read_file(file), file);
  std::vector<PublishedRun> runs;
  for (const std::filesystem::path& table : published_tables())
    std::ranges::move(parse_published_runs(read_file(table), table.string()), std::back_inserter(runs));
  return runs;
}

std::string_view name_of(Grade grade) {
  switch (grade) {
    case Grade::a:
      return "A";
    case Grade::a_minus:
      return "A-";
    case Grade::b:
      return "B";
    case Grade::c:
      return "C";
    case Grade::unknown:
      return "?";
  }
  BUG("unknown grade");
}

}  // namespace sextant
