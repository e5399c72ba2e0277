#include "bench/op_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "bench/one_op.h"
#include "bench/tries.h"
#include "cost/measured_ops.h"
#include "ir/signature.h"
#include "ops/ops.h"

namespace sextant {

namespace {

// Examples are written in f64; devices work in f32.
TensorTypes in_f32(TensorTypes types) {
  for (TensorType& type : types)
    if (type.dtype == DType::f64) type.dtype = DType::f32;
  return types;
}

double bytes_of(const TensorTypes& types) {
  double bytes = 0;
  for (const TensorType& type : types) bytes += static_cast<double>(type.bytes().n);
  return bytes;
}

// How an example grows: batches along every dim that the op calls b (or, of an op on any dims, along the first), and
// widths along the other letters but the sequence's, whose positions other operands may count.
struct Growth {
  int64_t batch = 1, width = 1;
};

TensorTypes grown(const OpDef& def, const TensorTypes& types, const Growth& growth) {
  Signature signature = parse_signature(def.operands);
  std::vector<const Operand*> operands = signature.operands_of(ranks_of(types));
  TensorTypes out = types;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string& letters = operands[i]->letters;
    std::vector<int64_t> dims(types[i].shape.dims().begin(), types[i].shape.dims().end());
    if (letters == "*" && !dims.empty()) dims[0] *= growth.batch;
    for (size_t d = 0; d < dims.size() && letters.size() == dims.size() && letters != "*"; ++d)
      dims[d] *= letters[d] == 'b' ? growth.batch : letters[d] == 's' ? 1 : growth.width;
    out[i].shape = GlobalShape(dims);
  }
  return out;
}

// The largest that the op takes, not far beyond the wanted bytes: as the example has it where no other will do.
std::unique_ptr<OneOp> largest(const OpBenchRequest& request, const OpDef& def, const Example& example,
                               TensorTypes& types) {
  constexpr int64_t kWidth = 32;
  TensorTypes small = in_f32(example.inputs);
  // Attributes hold sizes of heads and groups: such widths stay. An operand with several widths grows with their
  // product.
  std::vector<int64_t> widths{1};
  if (example.attrs.integer_or("heads", 0) == 0 && example.attrs.integer_or("groups", 0) == 0)
    for (int64_t width = 2; width <= kWidth; width *= 2)
      if (bytes_of(grown(def, small, {1, width})) <= request.least_bytes) widths.insert(widths.begin(), width);
  for (int64_t width : widths) {
    double times = request.least_bytes / std::max(1.0, bytes_of(grown(def, small, {1, width})));
    try {
      types = grown(def, small, {std::max<int64_t>(1, static_cast<int64_t>(times)), width});
      auto op = std::make_unique<OneOp>(request.executor, OneOpSpec{def, types, example.attrs, example.integers_below});
      op->run();
      return op;
    } catch (const std::exception&) {
      if (width == 1) break;
    }
  }
  types = small;
  return std::make_unique<OneOp>(request.executor, OneOpSpec{def, types, example.attrs, example.integers_below});
}

std::string types_text(const TensorTypes& types) {
  std::string text;
  for (const TensorType& type : types) {
    std::string dims;
    for (int64_t dim : type.shape.dims()) dims += (dims.empty() ? "" : "x") + std::to_string(dim);
    text += (text.empty() ? "" : ",") + (dims.empty() ? "1" : dims);
  }
  return text;
}

BenchResult result_of(OneOp& op, const std::string& kind, const std::string& name, const Repeat& repeat,
                      const Watch& watch) {
  Cost cost = op.cost();
  return {.kind = kind,
          .name = name,
          .shape = {},
          .dtype = "fp32",
          .size = size_of_op(cost),
          .samples = repeated([&] { return op.run(); }, repeat, watch),
          .flops = cost.flops.n,
          .bytes = static_cast<double>((cost.read + cost.written).n)};
}

struct AttentionTypes {
  TensorTypes forward, backward;
};

AttentionTypes types_of(const AttentionCase& a, DType dtype) {
  int64_t own = a.heads * a.head_dim, all = own + 2 * a.kv_heads * a.head_dim;
  TensorType y{dtype, {a.batch, a.seq, own}}, qkv{dtype, {a.batch, a.seq, all}},
      lse{wide_of(dtype), {a.batch, a.heads, a.seq}};
  return {{qkv}, {y, qkv, y, lse}};
}

}  // namespace

void bench_ops(const OpBenchRequest& request, BenchReport& report, const Watch& watch) {
  std::vector<const OpDef*> chosen;
  std::vector<std::string> left_out;
  for (const OpDef* def : all_ops()) {
    if (def->name.find(request.only) == std::string_view::npos) continue;
    if (def->message || def->examples.empty())
      left_out.push_back(std::string(def->name));  // one rank has no peer
    else
      chosen.push_back(def);
  }
  size_t done = 0;
  for (const OpDef* def : chosen) {
    if (watch.stop()) return;
    watch.say(fmt::format("op {} ({} of {})", def->name, ++done, chosen.size()));
    try {
      TensorTypes types;
      std::unique_ptr<OneOp> op = largest(request, *def, def->examples[0], types);
      BenchResult result = result_of(*op, "ops", std::string(def->name), request.repeat, watch);
      result.shape = types_text(types);
      if (!result.samples.empty()) report.results.push_back(std::move(result));
    } catch (const std::exception& error) {
      left_out.push_back(fmt::format("{} ({})", def->name, error.what()));
    }
  }
  for (const std::string& name : left_out) report.findings.push_back("not timed alone: " + name);
}

void bench_attention(const AttentionRequest& request, BenchReport& report, const Watch& watch) {
  constexpr double kMostWarm = 0.5;  // seconds: there are many cases, and each warms the next
  DType dtype = request.executor.target().computes_in.front();
  Repeat repeat = request.repeat;
  repeat.warm_seconds = std::min(repeat.warm_seconds, kMostWarm);
  size_t done = 0, all = 2 * request.shapes.size();
  Tries tries(report);
  for (const AttentionCase& shape : request.shapes) {
    Attrs attrs{{"heads", shape.heads}, {"kv_heads", shape.kv_heads}, {"head_dim", shape.head_dim}};
    AttentionTypes types = types_of(shape, dtype);
    struct Direction {
      const OpDef* def;
      const TensorTypes* inputs;
    };
    for (const Direction& direction :
         {Direction{&ops::attention, &types.forward}, Direction{&ops::attention_backward, &types.backward}}) {
      if (watch.stop()) return;
      std::string text =
          fmt::format("b{} s{} h{}/{} d{}", shape.batch, shape.seq, shape.heads, shape.kv_heads, shape.head_dim);
      std::string what = fmt::format("{} {}", direction.def->name, text);
      watch.say(fmt::format("{} ({} of {})", what, ++done, all));
      tries.run(what, [&] {
        OneOp op(request.executor, {*direction.def, *direction.inputs, attrs});
        BenchResult result = result_of(op, "attention", std::string(direction.def->name), repeat, watch);
        if (result.samples.empty()) return;
        result.shape = text;
        result.dtype = dtype == DType::bf16 ? "bf16" : "fp32";
        if (request.peak_flops_per_s > 0) result.peak_share = result.flops_per_s() / request.peak_flops_per_s;
        report.results.push_back(std::move(result));
      });
    }
  }
  tries.finish();
}

}  // namespace sextant
