#include "bench/grouped_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "bench/expert_loads.h"
#include "bench/one_op.h"
#include "bench/tries.h"

namespace sextant {

namespace {

constexpr size_t kExpertsInput = 2;  // of every one of these ops

// Meaning of an operand's rows: tokens, or slots (a token and one of its experts each).
enum class RowsOf : uint8_t { tokens, slots };

// How an op multiplies: rows of input 0 by a matrix of its expert, as it is stored or transposed; or, of a weight's
// gradient, the rows of both inputs that one expert has by each other.
struct GroupedForm {
  const OpDef* def;
  enum class Kind : uint8_t { rows_by_weight, rows_by_transposed_weight, weight_gradient } kind;
  RowsOf first, second;  // input 0, and the output (of a weight's gradient: input 1)
};

using enum GroupedForm::Kind;

const std::array<GroupedForm, 9>& forms() {
  using enum RowsOf;
  static const std::array<GroupedForm, 9> all{{
      {&ops::expert_up, rows_by_weight, tokens, slots},
      {&ops::expert_up_input_gradient, rows_by_transposed_weight, slots, tokens},
      {&ops::expert_up_weight_gradient, weight_gradient, slots, tokens},
      {&ops::expert_down, rows_by_weight, slots, tokens},
      {&ops::expert_down_input_gradient, rows_by_transposed_weight, tokens, slots},
      {&ops::expert_down_weight_gradient, weight_gradient, tokens, slots},
      {&ops::expert_rows, rows_by_weight, slots, slots},
      {&ops::expert_rows_input_gradient, rows_by_transposed_weight, slots, slots},
      {&ops::expert_rows_weight_gradient, weight_gradient, slots, slots},
  }};
  return all;
}

const GroupedForm* form_of(const OpDef* def) {
  auto found = std::ranges::find(forms(), def, &GroupedForm::def);
  return found == forms().end() ? nullptr : &*found;
}

bool takes_rows(const GroupedGemm& gemm) {
  return gemm.attrs.has("blocks");
}

// The expert of every slot, -1 where it has none. Of rows, the last ones of each group are empty: room that balanced
// routing leaves.
std::vector<int32_t> routing_of(const GroupedGemm& gemm, double imbalance) {
  const GlobalShape& shape = gemm.inputs[kExpertsInput].shape;
  int64_t experts = gemm.attrs.integer("experts"), last = shape.last();
  if (!takes_rows(gemm)) {
    int64_t tokens = shape.count() / last;
    return experts_of_tokens(tokens, last, expert_loads(experts, shape.count(), imbalance));
  }
  auto filled = static_cast<int64_t>(std::llround(static_cast<double>(last) * gemm.attrs.real("filled")));
  int64_t groups = shape.count() / last;
  std::vector<int32_t> in_use =
      experts_of_tokens(groups * filled, 1, expert_loads(experts, groups * filled, imbalance));
  std::vector<int32_t> all(static_cast<size_t>(shape.count()), -1);
  for (int64_t group = 0; group < groups; ++group)
    std::copy_n(in_use.begin() + group * filled, filled, all.begin() + group * last);
  return all;
}

// Elements of the result, computed again in double from the elements as they were drawn.
class GroupedCheck {
 public:
  GroupedCheck(const OneOp& op, const GroupedGemm& gemm, const std::vector<int32_t>& experts)
      : op_(op), form_(*form_of(gemm.def)), experts_(experts), dtype_(gemm.inputs[0].dtype) {
    per_token_ = takes_rows(gemm) ? 1 : gemm.inputs[kExpertsInput].shape.last();
    first_width_ = gemm.inputs[0].shape.last();
    second_width_ = gemm.inputs[1].shape.last();
    if (form_.kind == weight_gradient) {
      matrix_rows_ = first_width_;
      results_ = gemm.attrs.integer("experts") * first_width_ * second_width_;
      return;
    }
    matrix_rows_ = gemm.inputs[1].shape[0] / gemm.attrs.integer("experts");
    auto slots = static_cast<int64_t>(experts.size());
    results_ = (form_.second == RowsOf::slots ? slots : slots / per_token_) * columns();
  }

  // The largest of sampled results, in terms of what rounding allows.
  double error() const {
    constexpr uint64_t kSamples = 32;
    Random random(3, "sampled elements");
    double worst = 0;
    for (uint64_t i = 0; i < kSamples; ++i) {
      auto at = static_cast<int64_t>(random.below(i, static_cast<uint64_t>(results_)));
      Exact exact = form_.kind == weight_gradient ? of_weights(at) : of_rows(at);
      worst = std::max(worst, std::abs(op_.result(at) - exact.sum) / (exact.sum * allowed(exact.terms) + 1e-30));
    }
    return worst;
  }

 private:
  struct Exact {
    double sum = 0, terms = 0;
  };

  int64_t columns() const { return form_.kind == rows_by_weight ? matrix_rows_ : second_width_; }

  // Relative: all terms are positive. Results of 16 bits are rounded, a token's once more for each of its experts.
  double allowed(double terms) const {
    if (dtype_ == DType::f32) return 0x1p-23 * (2 + std::sqrt(terms));
    bool wide = form_.kind == weight_gradient;
    return 0x1p-12 + (wide ? 0 : 0x1p-8 * static_cast<double>(1 + per_token_));
  }

  int64_t row(RowsOf of, int64_t slot) const { return of == RowsOf::slots ? slot : slot / per_token_; }

  void add_slot(int64_t slot, int64_t column, Exact& exact) const {
    int64_t expert = experts_[static_cast<size_t>(slot)], from = row(form_.first, slot) * first_width_;
    if (expert < 0) return;
    for (int64_t d = 0; d < first_width_; ++d) {
      int64_t matrix_row = form_.kind == rows_by_weight ? column : d,
              within = form_.kind == rows_by_weight ? d : column;
      exact.sum += op_.drawn(0, from + d) * op_.drawn(1, (expert * matrix_rows_ + matrix_row) * second_width_ + within);
    }
    exact.terms += static_cast<double>(first_width_);
  }

  Exact of_rows(int64_t at) const {
    Exact exact;
    int64_t result_row = at / columns(), column = at % columns();
    int64_t slots = form_.second == RowsOf::slots ? 1 : per_token_;
    for (int64_t i = 0; i < slots; ++i) add_slot(result_row * slots + i, column, exact);
    return exact;
  }

  Exact of_weights(int64_t at) const {
    Exact exact;
    int64_t matrix_row = at / second_width_, column = at % second_width_;
    int64_t expert = matrix_row / matrix_rows_, within = matrix_row % matrix_rows_;
    for (size_t i = 0; i < experts_.size(); ++i) {
      if (experts_[i] != expert) continue;
      auto slot = static_cast<int64_t>(i);
      exact.sum += op_.drawn(0, row(form_.first, slot) * first_width_ + within) *
                   op_.drawn(1, row(form_.second, slot) * second_width_ + column);
      exact.terms += 1;
    }
    return exact;
  }

  const OneOp& op_;
  const GroupedForm& form_;
  const std::vector<int32_t>& experts_;
  DType dtype_;
  int64_t per_token_ = 1, first_width_ = 0, second_width_ = 0, matrix_rows_ = 0, results_ = 0;
};

GroupedGemm in_type(GroupedGemm gemm, DType dtype) {
  for (size_t i = 0; i < kExpertsInput; ++i) gemm.inputs[i].dtype = dtype;
  return gemm;
}

Cost cost_of(const GroupedGemm& gemm) {
  return gemm.def->cost(gemm.attrs, gemm.inputs, infer_types(*gemm.def, gemm.attrs, gemm.inputs));
}

std::string grouped_shape_text(const Gemm& gemm, double imbalance) {
  bool weights = gemm.depth != std::floor(gemm.depth), rows = gemm.rows != std::floor(gemm.rows);
  std::string text = fmt::format("{:.0f}x{:.{}f}x{:.0f}x{:.{}f}", gemm.count, gemm.rows, rows ? 1 : 0, gemm.columns,
                                 gemm.depth, weights ? 1 : 0);
  return imbalance > 1 ? fmt::format("{} imbalance {:g}", text, imbalance) : text;
}

BenchResult time_grouped(const GroupedGemmRequest& request, const GroupedGemm& gemm, const Repeat& repeat,
                         const Watch& watch) {
  std::vector<int32_t> experts = routing_of(gemm, request.imbalance);
  OneOp op(request.executor, {*gemm.def, gemm.inputs, gemm.attrs, 1, {{kExpertsInput, experts}}});
  Cost cost = op.cost();
  const Gemm& of = cost.gemms.front();
  BenchResult result{.kind = "grouped gemm",
                     .name = std::string(gemm.def->name),
                     .shape = grouped_shape_text(of, request.imbalance),
                     .dtype = std::string(grouped_type_name(gemm.inputs[0].dtype)),
                     .size = {of.count, of.rows, of.columns, of.depth},
                     .samples = repeated([&] { return op.run(); }, repeat, watch),
                     .flops = cost.flops.n,
                     .bytes = static_cast<double>((cost.read + cost.written).n)};
  if (!result.samples.empty()) result.error = GroupedCheck(op, gemm, experts).error();
  if (auto peak = request.peaks.find(result.dtype); peak != request.peaks.end() && peak->second > 0)
    result.peak_share = result.flops_per_s() / peak->second;
  return result;
}

// Two grouped GEMMs with the same key are equal.
std::string key_of(const GroupedGemm& gemm) {
  std::string key(gemm.def->name);
  for (const TensorType& type : gemm.inputs)
    for (int64_t dim : type.shape.dims()) key += fmt::format(" {}", dim);
  return key + fmt::format(" {}", gemm.attrs.integer("experts"));
}

}  // namespace

std::string_view grouped_type_name(DType dtype) {
  return dtype == DType::bf16 ? "bf16" : dtype == DType::f16 ? "fp16" : "fp32";
}

bool is_grouped_gemm(const Op& op) {
  return form_of(op.def) != nullptr;
}

std::vector<GroupedGemm> grouped_gemms_of(const ExpertLayer& layer) {
  int64_t slots = layer.tokens * layer.per_token;
  TensorType hidden{DType::f32, {1, layer.tokens, layer.hidden}}, gate_up{DType::f32, {1, slots, 2 * layer.width}},
      inner{DType::f32, {1, slots, layer.width}},
      up_weight{DType::f32, {layer.experts * 2 * layer.width, layer.hidden}},
      down_weight{DType::f32, {layer.experts * layer.hidden, layer.width}},
      experts{DType::i32, {1, layer.tokens, layer.per_token}};
  Attrs attrs{{"experts", layer.experts}};
  return {{&ops::expert_up, {hidden, up_weight, experts}, attrs},
          {&ops::expert_down, {inner, down_weight, experts}, attrs},
          {&ops::expert_up_input_gradient, {gate_up, up_weight, experts}, attrs},
          {&ops::expert_down_input_gradient, {hidden, down_weight, experts}, attrs},
          {&ops::expert_up_weight_gradient, {gate_up, hidden, experts}, attrs},
          {&ops::expert_down_weight_gradient, {hidden, inner, experts}, attrs}};
}

std::vector<GroupedGemm> grouped_gemms_of(const LoweredRun& run) {
  std::vector<GroupedGemm> found;
  std::set<std::string> keys;
  for (const Program& program : run.programs.train)
    for (const Region& region : program.regions)
      for (const Op& op : region.ops) {
        if (!is_grouped_gemm(op)) continue;
        GroupedGemm gemm{.def = op.def, .inputs = {}, .attrs = {}};
        // The loop stops after the experts: the tensor to which a weight's gradient is added, a later input, is no
        // operand of the GEMM.
        for (size_t i = 0; i <= kExpertsInput; ++i) {
          const Value& value = program[op.inputs[i]];
          std::span<const int64_t> dims = value.local.dims();
          gemm.inputs.push_back({value.dtype, GlobalShape(std::vector(dims.begin(), dims.end()))});
        }
        // Of rows, a rank holds the experts of some blocks: alone, it has all there are.
        auto held = static_cast<int64_t>(local_cost(program, op).gemms.front().count);
        gemm.attrs.set("experts", held);
        if (op.attrs.has("blocks")) {
          gemm.attrs.set("blocks", int64_t{1});
          gemm.attrs.set("filled", op.attrs.real("filled"));
        }
        if (keys.insert(key_of(gemm)).second) found.push_back(std::move(gemm));
      }
  return found;
}

void bench_grouped_gemms(const GroupedGemmRequest& request, BenchReport& report, const Watch& watch) {
  constexpr double kMostWarm = 0.5;  // seconds: there are many, and each warms the next
  Repeat repeat = request.repeat;
  repeat.warm_seconds = std::min(repeat.warm_seconds, kMostWarm);
  size_t done = 0, all = request.gemms.size() * request.types.size();
  Tries tries(report);
  for (DType dtype : request.types)
    for (const GroupedGemm& each : request.gemms) {
      if (watch.stop()) return;
      GroupedGemm gemm = in_type(each, dtype);
      std::string what =
          fmt::format("{} {} {}", gemm.def->name, grouped_shape_text(cost_of(gemm).gemms.front(), request.imbalance),
                      grouped_type_name(dtype));
      watch.say(fmt::format("{} ({} of {})", what, ++done, all));
      tries.run(what, [&] {
        BenchResult result = time_grouped(request, gemm, repeat, watch);
        if (!result.samples.empty()) report.results.push_back(std::move(result));
      });
    }
  tries.finish();
}

}  // namespace sextant
