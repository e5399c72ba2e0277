#include "cost/software_profile_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "base/files.h"
#include "base/nearest.h"
#include "cost/machine_file.h"
#include "cost/toml_fields.h"
#include "ops/ops.h"

namespace sextant {

namespace {

constexpr std::string_view kUnfused = "unfused";
constexpr std::string_view kAndSaid = " :: ";

// In the order of Elementwise.
const std::vector<std::string_view> kElementwise{"fused", "compiled", "jit", "eager"};
// In the orders of Products, TokenCopies and ExpertGemms.
const std::vector<std::string_view> kProducts{"held", "fp8-delayed", "fp8-current", "fp8-blocks", "mxfp8", "nvfp4"};
const std::vector<std::string_view> kTokenCopies{"expert", "rank", "node"};
const std::vector<std::string_view> kExpertGemms{"grouped", "streams", "loop"};

struct Overlap {
  std::string_view word;
  bool SoftwareProfile::*flag;
};
constexpr std::array kOverlaps{Overlap{"gradients", &SoftwareProfile::overlap_gradients},
                               Overlap{"gathers", &SoftwareProfile::overlap_gathers},
                               Overlap{"pipeline", &SoftwareProfile::overlap_pipeline},
                               Overlap{"tensor", &SoftwareProfile::overlap_tensor},
                               Overlap{"tensor_backward", &SoftwareProfile::overlap_tensor_backward},
                               Overlap{"experts", &SoftwareProfile::overlap_experts}};

// A profile as the file has it: some of what it says is more than one field of ours.
struct WrittenProfile {
  SoftwareProfile profile;
  std::string like;
  std::string attention;
  size_t elementwise = 0, products = 0, token_copies = 0, expert_gemms = 0;
  int64_t gradient_wire_bytes = 4, weight_wire_bytes = 2, gradient_bytes = 4, optimizer_bytes = 12,
          accumulation_bytes = 0, update_bytes = 0, interleaved_chunks = 0;
  double far_gb_s_per_node = 0;
  std::vector<std::string> overlap;

  explicit WrittenProfile(SoftwareProfile given = {})
      : profile(std::move(given)),
        attention(profile.attention == AttentionKernel::unfused ? std::string(kUnfused) : profile.attention_table),
        elementwise(static_cast<size_t>(profile.elementwise)),
        products(static_cast<size_t>(profile.products)),
        token_copies(static_cast<size_t>(profile.token_copies)),
        expert_gemms(static_cast<size_t>(profile.expert_gemms)),
        gradient_wire_bytes(profile.gradient_wire_bytes),
        weight_wire_bytes(profile.weight_wire_bytes),
        gradient_bytes(profile.gradient_bytes),
        optimizer_bytes(profile.optimizer_bytes),
        accumulation_bytes(profile.accumulation_bytes),
        update_bytes(profile.update_bytes),
        interleaved_chunks(profile.interleaved_chunks),
        far_gb_s_per_node(profile.far_bytes_per_s_per_node.value_or(0) / 1e9) {
    for (const Overlap& each : kOverlaps)
      if (profile.*each.flag) overlap.emplace_back(each.word);
  }

  std::vector<Field> fields() {
    constexpr int64_t kMostBytes = 64, kMostChunks = 1024;
    return {{"about", TextPlace{&profile.about}},
            {"source", TextPlace{&profile.source}},
            {"like", TextPlace{&like}},
            {"matches", TextsPlace{&profile.matches}},
            {"searched", TextsPlace{&profile.searched}},
            {"attention", TextPlace{&attention}},
            {"elementwise", WordPlace{&elementwise, kElementwise}},
            {"backward_without_window", FlagPlace{&profile.backward_without_window}},
            {"eager_ops", TextsPlace{&profile.eager_ops}},
            {"repacks_attention", FlagPlace{&profile.repacks_attention}},
            {"dropout", FlagPlace{&profile.dropout}},
            {"separate_mask", FlagPlace{&profile.separate_mask}},
            {"embedding_gemm", FlagPlace{&profile.embedding_gemm}},
            {"loss_in_f32", FlagPlace{&profile.loss_in_f32}},
            {"loss_eager", FlagPlace{&profile.loss_eager}},
            {"holds_last_logits", FlagPlace{&profile.holds_last_logits}},
            {"gradient_wire_bytes", CountPlace{&gradient_wire_bytes, 1, kMostBytes}},
            {"weight_wire_bytes", CountPlace{&weight_wire_bytes, 1, kMostBytes}},
            {"gradient_bytes", CountPlace{&gradient_bytes, 1, kMostBytes}},
            {"accumulation_bytes", CountPlace{&accumulation_bytes, 0, kMostBytes}},
            {"holds_gradients", FlagPlace{&profile.holds_gradients}},
            {"keeps_activation_outputs", FlagPlace{&profile.keeps_activation_outputs}},
            {"keeps_gathered", FlagPlace{&profile.keeps_gathered}},
            {"optimizer_bytes", CountPlace{&optimizer_bytes, 0, kMostBytes}},
            {"update_bytes", CountPlace{&update_bytes, 0, kMostBytes}},
            {"bucket_mb", NumberPlace{&profile.bucket_bytes, {0, 1e5}, 1, 1e-6}},
            {"buffer_gb", NumberPlace{&profile.buffer_bytes, {0, 1e3}, 1e9}},
            {"counts_without_context", FlagPlace{&profile.counts_without_context}},
            {"headroom_gb", NumberPlace{&profile.headroom_bytes, {0, 1e3}, 1e9}},
            {"zero_all_reduces", FlagPlace{&profile.zero_all_reduces}},
            {"zero_coalesces", FlagPlace{&profile.zero_coalesces}},
            {"zero_waits", FlagPlace{&profile.zero_waits}},
            {"zero_broadcasts", FlagPlace{&profile.zero_broadcasts}},
            {"overlap", TextsPlace{&overlap}},
            {"products", WordPlace{&products, kProducts}},
            {"token_copies", WordPlace{&token_copies, kTokenCopies}},
            {"expert_gemms", WordPlace{&expert_gemms, kExpertGemms}},
            {"experts_whole", FlagPlace{&profile.experts_whole}},
            {"expert_rate", NumberPlace{&profile.expert_rate, {0.1, 1}}},
            {"expert_passes", NumberPlace{&profile.expert_passes, {0.1, 10}}},
            {"expert_host_us", NumberPlace{&profile.expert_host_s, {0, 1e5}, 1, 1e6}},
            {"expert_gemm_host_us", NumberPlace{&profile.expert_gemm_host_s, {0, 1e4}, 1, 1e6}},
            {"expert_counts_on_host", FlagPlace{&profile.expert_counts_on_host}},
            {"expert_wait_us", NumberPlace{&profile.expert_wait_s, {0, 1e4}, 1, 1e6}},
            {"host_us_per_kernel", NumberPlace{&profile.host_s_per_kernel, {0, 1e4}, 1, 1e6}},
            {"launches_wait", FlagPlace{&profile.launches_wait}},
            {"far_gb_s_per_node", NumberPlace{&far_gb_s_per_node, {0.01, 1e5}}},
            {"far_is_reached", FlagPlace{&profile.far_is_reached}},
            {"far_latency_us", NumberPlace{&profile.far_latency_s, {0, 1e4}, 1, 1e6}},
            {"recompute", TextPlace{&profile.recompute}},
            {"interleaved_chunks", CountPlace{&interleaved_chunks, 0, kMostChunks}},
            {"sequence_parallel", FlagPlace{&profile.sequence_parallel}},
            {"selective_is_attention", FlagPlace{&profile.selective_is_attention}},
            {"selective_is_half", FlagPlace{&profile.selective_is_half}}};
  }

  SoftwareProfile finished() const {
    SoftwareProfile out = profile;
    out.attention = attention == kUnfused ? AttentionKernel::unfused : AttentionKernel::fused;
    out.attention_table = attention;
    out.elementwise = static_cast<Elementwise>(elementwise);
    out.products = static_cast<Products>(products);
    out.token_copies = static_cast<TokenCopies>(token_copies);
    out.expert_gemms = static_cast<ExpertGemms>(expert_gemms);
    out.gradient_wire_bytes = static_cast<int>(gradient_wire_bytes);
    out.weight_wire_bytes = static_cast<int>(weight_wire_bytes);
    out.gradient_bytes = static_cast<int>(gradient_bytes);
    out.optimizer_bytes = static_cast<int>(optimizer_bytes);
    out.accumulation_bytes = static_cast<int>(accumulation_bytes);
    out.update_bytes = static_cast<int>(update_bytes);
    out.interleaved_chunks = static_cast<int>(interleaved_chunks);
    if (far_gb_s_per_node > 0) out.far_bytes_per_s_per_node = far_gb_s_per_node * 1e9;
    for (const Overlap& each : kOverlaps) out.*each.flag = std::ranges::count(overlap, each.word) > 0;
    return out;
  }
};

class ProfilesReader {
 public:
  ProfilesReader(std::string_view text, std::string_view place) : entries_(parse_toml(text, place)), reader_(place) {}

  std::vector<SoftwareProfile> read() {
    for (size_t at = 0; at < entries_.size(); ++at)
      if (table_and_key(entries_[at].key).first.empty()) read_profile(entries_[at]);
    reader_.throw_if_any();
    return std::move(profiles_);
  }

 private:
  void read_profile(const TomlEntry& table) {
    if (!std::holds_alternative<TomlValue::Table>(table.value.is))
      return reader_.complain(table,
                              {.got = "got " + shown(table.value), .expected = "a table, [NAME], for each profile"});
    WrittenProfile written(start_of(table.key));
    written.profile.name = table.key;
    std::vector<Field> fields = written.fields();
    for (const TomlEntry& entry : entries_) {
      auto [parent, key] = table_and_key(entry.key);
      if (parent == table.key) reader_.read(entry, key, fields, table.key);
      if (parent == table.key && key == "overlap") check_overlap(entry, written.overlap);
      if (parent == table.key && key == "eager_ops") check_eager(entry, written.profile.eager_ops);
    }
    if (written.attention.empty())
      reader_.complain(table, {.got = "attention is not given", .expected = "a kernel's name or \"unfused\""});
    if (written.profile.far_is_reached && written.far_gb_s_per_node <= 0)
      reader_.complain(table,
                       {.got = "far_is_reached without far_gb_s_per_node", .expected = "what was reached, in GB/s"});
    if (written.profile.source.empty())
      reader_.complain(table,
                       {.got = "has no source", .expected = "source = \"where its facts are written, and when\""});
    profiles_.push_back(written.finished());
  }

  // The profile that `like` names, without the facts that belong to the runs of that profile alone.
  SoftwareProfile start_of(const std::string& name) {
    SoftwareProfile plain;
    plain.attention_table.clear();
    plain.keeps_logits = true;
    for (const Overlap& each : kOverlaps) plain.*each.flag = false;
    for (const TomlEntry& entry : entries_) {
      if (entry.key != name + ".like") continue;
      auto wanted = std::get_if<std::string>(&entry.value.is);
      auto found =
          std::ranges::find_if(profiles_, [&](const SoftwareProfile& each) { return wanted && each.name == *wanted; });
      if (found == profiles_.end()) {
        reader_.complain(entry, {.got = "got " + shown(entry.value), .expected = "the name of a profile further up"});
        return plain;
      }
      plain = *found;
      plain.about.clear();
      plain.source.clear();
      plain.matches.clear();
      plain.searched.clear();
      plain.far_bytes_per_s_per_node.reset();  // of a cluster, not of software
      plain.far_is_reached = false;
      plain.far_latency_s = 0;
    }
    return plain;
  }

  void check_overlap(const TomlEntry& entry, const std::vector<std::string>& words) {
    auto known = [](const std::string& word) {
      return std::ranges::any_of(kOverlaps, [&](const Overlap& each) { return each.word == word; });
    };
    if (!std::ranges::all_of(words, known))
      reader_.complain(
          entry, {.got = fmt::format("got {}", fmt::join(words, ", ")),
                  .expected = fmt::format("{}", fmt::join(std::views::transform(kOverlaps, &Overlap::word), ", "))});
  }

  void check_eager(const TomlEntry& entry, const std::vector<std::string>& ops) {
    std::vector<std::string_view> known;  // those that take more passes in some software
    for (const OpDef* op : all_ops())
      if (op->passes != PassesElsewhere{}) known.push_back(op->name);
    if (!std::ranges::all_of(ops, [&](const std::string& op) { return std::ranges::count(known, op) > 0; }))
      reader_.complain(entry, {.got = fmt::format("got {}", fmt::join(ops, ", ")),
                               .expected = fmt::format("{}", fmt::join(known, ", "))});
  }

  std::vector<TomlEntry> entries_;
  FieldReader reader_;
  std::vector<SoftwareProfile> profiles_;
};

}  // namespace

std::optional<Products> products_named(std::string_view name) {
  auto found = std::ranges::find(kProducts, name);
  if (found == kProducts.end()) return std::nullopt;
  return static_cast<Products>(found - kProducts.begin());
}

std::vector<SoftwareProfile> parse_profiles(std::string_view text, std::string_view place) {
  return ProfilesReader(text, place).read();
}

std::vector<SoftwareProfile> load_profiles() {
  std::string file = find_machine_file("software");
  if (file.empty())
    throw UserError({.place = "software.toml",
                     .got = "file not found",
                     .hint = "it lies beside the machines; SEXTANT_MACHINES names their folder"});
  return parse_profiles(read_file(file), file);
}

const SoftwareProfile* profile_for_source(const std::vector<SoftwareProfile>& profiles, std::string_view source,
                                          std::string_view said) {
  const SoftwareProfile* best = nullptr;
  size_t longest = 0;
  for (const SoftwareProfile& profile : profiles) {
    for (std::string_view match : profile.matches) {
      bool fits = true;
      std::string_view rest = match;
      for (bool first = true; fits && (first || !rest.empty()); first = false) {
        size_t cut = rest.find(kAndSaid);
        std::string_view part = rest.substr(0, cut);
        rest = cut == rest.npos ? std::string_view() : rest.substr(cut + kAndSaid.size());
        fits = first ? source.starts_with(part) : said.find(part) != said.npos;
      }
      if (fits && match.size() > longest) best = &profile, longest = match.size();
    }
  }
  return best;
}

const SoftwareProfile& profile_named(const std::vector<SoftwareProfile>& profiles, std::string_view name) {
  std::vector<std::string_view> names;
  for (const SoftwareProfile& profile : profiles) {
    if (profile.name == name) return profile;
    names.push_back(profile.name);
  }
  throw UserError({.place = std::string(name),
                   .got = "is not a known software profile",
                   .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                   .hint = did_you_mean(name, std::span<const std::string_view>(names))});
}

}  // namespace sextant
