#include "passes/fuse.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "ir/alias.h"
#include "ops/ops.h"
#include "passes/sort_slots.h"

namespace sextant {

namespace {

// The ops that read each value, in the order in which they were told.
class Readers {
 public:
  explicit Readers(size_t values) : first_(values, kNone), last_(values, kNone) {}

  void add(ValueId id, size_t op) {
    int32_t& last = last_[static_cast<size_t>(id)];
    auto entry = static_cast<int32_t>(entries_.size());
    (last == kNone ? first_[static_cast<size_t>(id)] : entries_[static_cast<size_t>(last)].next) = entry;
    last = entry;
    entries_.push_back({op, kNone});
  }

  // The first of them for which `holds`; `otherwise` when there is none.
  template <class Holds>
  size_t first_that(ValueId id, size_t otherwise, Holds holds) const {
    for (int32_t at = first_[static_cast<size_t>(id)]; at != kNone; at = entries_[static_cast<size_t>(at)].next)
      if (holds(entries_[static_cast<size_t>(at)].op)) return entries_[static_cast<size_t>(at)].op;
    return otherwise;
  }

 private:
  static constexpr int32_t kNone = -1;
  struct Entry {
    size_t op;
    int32_t next;
  };
  std::vector<int32_t> first_, last_;  // entries, by value
  std::vector<Entry> entries_;
};

// The ops of one region while pairs of them are replaced. A replaced op has no definition any more until `finish`.
class FusedRegion {
 public:
  FusedRegion(Region& region, const std::vector<int>& uses)
      : ops_(std::move(region.ops)),
        region_(region),
        uses_(uses),
        made_by_(uses.size(), ops_.size()),
        readers_(uses.size()) {
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (ValueId id : ops_[i].outputs) made_by_[static_cast<size_t>(id)] = i;
      for (ValueId id : ops_[i].inputs) readers_.add(id, i);
    }
  }

  size_t size() const { return ops_.size(); }
  const Op& op(size_t i) const { return ops_[i]; }
  bool is(size_t i, const OpDef& def) const { return ops_[i].def == &def; }

  // The first op of the region of one of these kinds that reads the value as its input 0; size() when there is none.
  size_t first_reader(ValueId id, std::initializer_list<const OpDef*> defs) const {
    return readers_.first_that(id, size(), [&](size_t i) {
      return ops_[i].def && ops_[i].inputs[0] == id && std::find(defs.begin(), defs.end(), ops_[i].def) != defs.end();
    });
  }

  // The op of the region that makes the value; size() when none does.
  size_t maker(ValueId id) const { return made_by_[static_cast<size_t>(id)]; }

  // Whether nothing but one op of the Program reads it.
  bool has_one_reader(ValueId id) const { return uses_[static_cast<size_t>(id)] == 1; }

  // Whether the value is there before op i of the region.
  bool is_made_before(ValueId id, size_t i) const {
    size_t by = maker(id);
    return by == size() || by < i;
  }

  // `fused` stands in place of op `at`; op `gone` is no more.
  void replace(size_t at, size_t gone, Op fused) {
    for (ValueId id : fused.outputs) made_by_[static_cast<size_t>(id)] = at;
    for (ValueId id : fused.inputs) readers_.add(id, at);
    ops_[at] = std::move(fused);
    ops_[gone].def = nullptr;
  }

  void finish() {
    std::erase_if(ops_, [](const Op& op) { return op.def == nullptr; });
    region_.ops = std::move(ops_);
  }

 private:
  std::vector<Op> ops_;
  Region& region_;
  const std::vector<int>& uses_;
  std::vector<size_t> made_by_;  // by value
  Readers readers_;
};

void add_norm(FusedRegion& region, size_t i) {
  if (!region.is(i, ops::add)) return;
  size_t norm = region.first_reader(region.op(i).outputs[0], {&ops::rms_norm, &ops::layer_norm});
  if (norm == region.size()) return;
  const Op &sum = region.op(i), &of = region.op(norm);
  for (size_t k = 1; k < of.inputs.size(); ++k)
    if (!region.is_made_before(of.inputs[k], i)) return;  // a gathered weight
  Op fused = of;
  fused.def = of.def == &ops::rms_norm ? &ops::add_rms_norm : &ops::add_layer_norm;
  fused.inputs = {sum.inputs[0], sum.inputs[1]};
  fused.inputs.insert(fused.inputs.end(), of.inputs.begin() + 1, of.inputs.end());
  fused.outputs.insert(fused.outputs.begin(), sum.outputs[0]);
  region.replace(i, norm, std::move(fused));
}

void norm_gradient(FusedRegion& region, size_t i) {
  if (!region.is(i, ops::add)) return;
  for (size_t side : {size_t{0}, size_t{1}}) {
    ValueId gradient = region.op(i).inputs[side], plus = region.op(i).inputs[1 - side];
    size_t norm = region.maker(gradient);
    if (norm == region.size() || !region.has_one_reader(gradient)) continue;
    bool plain = (region.is(norm, ops::rms_norm_backward) && region.op(norm).inputs.size() == 4) ||
                 (region.is(norm, ops::layer_norm_backward) && region.op(norm).inputs.size() == 5);
    if (!plain || region.op(norm).outputs[0] != gradient || !region.is_made_before(plus, norm)) continue;
    Op fused = region.op(norm);
    fused.inputs.push_back(plus);
    fused.outputs[0] = region.op(i).outputs[0];
    region.replace(norm, i, std::move(fused));
    return;
  }
}

void gelu(FusedRegion& region, size_t i) {
  if (!region.is(i, ops::linear)) return;
  size_t after = region.first_reader(region.op(i).outputs[0], {&ops::gelu});
  if (after == region.size()) return;
  Op fused = region.op(i);
  fused.def = &ops::linear_gelu;
  fused.outputs = {region.op(after).outputs[0], region.op(i).outputs[0]};
  region.replace(i, after, std::move(fused));
}

void gelu_gradient(FusedRegion& region, size_t i) {
  if (!region.is(i, ops::linear_input_gradient)) return;
  ValueId gradient = region.op(i).outputs[0];
  size_t after = region.first_reader(gradient, {&ops::gelu_backward});
  if (after == region.size() || !region.has_one_reader(gradient)) return;
  ValueId pre = region.op(after).inputs[1];
  if (!region.is_made_before(pre, i)) return;
  Op fused = region.op(i);
  fused.def = &ops::linear_gelu_gradient;
  fused.inputs.push_back(pre);
  fused.outputs = region.op(after).outputs;
  region.replace(i, after, std::move(fused));
}

void gradients(FusedRegion& region, size_t i) {
  if (!region.is(i, ops::linear_weight_gradient) || !accumulates(region.op(i))) return;
  size_t bias = region.first_reader(region.op(i).inputs[0], {&ops::linear_bias_gradient});
  if (bias == region.size() || !accumulates(region.op(bias))) return;
  const Op &w = region.op(i), &b = region.op(bias);
  // Both begin their sums, or neither does; and both are there when the first is asked for.
  if (starts_sum(w) != starts_sum(b) || !region.is_made_before(b.inputs.back(), i)) return;
  Op fused = w;
  fused.def = &ops::linear_gradients;
  fused.attrs = {};
  if (starts_sum(w)) fused.attrs.set("starts", int64_t{1});
  fused.inputs = {w.inputs[0], w.inputs[1], w.inputs[2], b.inputs[1]};
  fused.outputs = {w.outputs[0], b.outputs[0]};
  region.replace(i, bias, std::move(fused));
}

// The ops whose kernels can find the largest magnitude of an output while they write it (attr `amax`).
struct WritesAmax {
  const OpDef* def;
  size_t output;
};
constexpr WritesAmax kWriteAmax[] = {{&ops::rms_norm, 0},
                                     {&ops::add_rms_norm, 1},
                                     {&ops::rms_norm_backward, 0},
                                     {&ops::layer_norm, 0},
                                     {&ops::add_layer_norm, 1},
                                     {&ops::swiglu, 0},
                                     {&ops::swiglu_backward, 0},
                                     {&ops::rope, 0},
                                     {&ops::geglu, 0},
                                     {&ops::geglu_backward, 0},
                                     {&ops::gelu, 0},
                                     {&ops::gelu_backward, 0},
                                     {&ops::gelu_erf, 0},
                                     {&ops::gelu_erf_backward, 0}};

void amax(FusedRegion& region, size_t i) {
  if (!region.is(i, ops::absmax)) return;
  ValueId of = region.op(i).inputs[0];
  size_t maker = region.maker(of);
  if (maker == region.size()) return;
  const Op& made = region.op(maker);
  auto can = std::find_if(std::begin(kWriteAmax), std::end(kWriteAmax),
                          [&](const WritesAmax& w) { return w.def == made.def; });
  if (can == std::end(kWriteAmax) || made.outputs[can->output] != of || made.attrs.has("amax")) return;
  Op fused = made;
  fused.attrs.set("amax", int64_t{1});
  fused.outputs.push_back(region.op(i).outputs[0]);
  region.replace(maker, i, std::move(fused));
}

// One of the two: at each op of a region, or over the whole Program.
struct Fusion {
  std::string_view name;
  void (*at)(FusedRegion&, size_t op) = nullptr;
  void (*over)(Program&) = nullptr;
};

constexpr std::array kFusions{Fusion{"add_norm", add_norm},
                              Fusion{"norm_gradient", norm_gradient},
                              Fusion{"gelu", gelu},
                              Fusion{"gelu_gradient", gelu_gradient},
                              Fusion{"gradients", gradients},
                              Fusion{.name = "slot_order", .over = sort_slots},
                              Fusion{"amax", amax}};

std::vector<int> count_uses(const Program& program) {
  std::vector<int> uses(program.values.size(), 0);
  for (const Value& value : program.values)
    uses[static_cast<size_t>(value.id)] = value.kind == ValueKind::fetch ? 1 : 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (ValueId id : op.inputs) ++uses[static_cast<size_t>(id)];
  return uses;
}

}  // namespace

void fuse(Program& program, const Target& target) {
  for (std::string_view wanted : target.fusions) {
    auto fusion = std::find_if(kFusions.begin(), kFusions.end(), [&](const Fusion& f) { return f.name == wanted; });
    BUG_IF(fusion == kFusions.end(), "target {} asks for the fusion '{}', which does not exist", target.name, wanted);
    if (fusion->over) {
      fusion->over(program);
      continue;
    }
    std::vector<int> uses = count_uses(program);
    for (Region& region : program.regions) {
      FusedRegion fused(region, uses);
      for (size_t i = 0; i < fused.size(); ++i)
        if (fused.op(i).def) fusion->at(fused, i);
      fused.finish();
    }
  }
}

std::span<const std::string_view> fusion_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kFusions.size()> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = kFusions[i].name;
    return names;
  }();
  return kNames;
}

}  // namespace sextant
