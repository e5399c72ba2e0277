// Attention on the device, through cuDNN and by our own kernels, against the CPU's kernels in f64 on the same numbers.
#include <gtest/gtest.h>

#include <cstring>

#include "base/bf16.h"
#include "base/rng.h"
#include "cuda/device_bytes.h"
#include "cuda/device_runner.h"
#include "exec/cuda/attention/attention_library.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/kernel_runner.h"
#include "ir/alias.h"
#include "mesh/placement.h"
#include "nn/blocks.h"

namespace sextant {
namespace {

using Words = std::vector<std::byte>;

class CudaAttention : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no device";
  }
};

double tolerance(DType dtype) {
  return dtype == DType::bf16 ? 1e-2 : 1e-5;
}

// The value of a number after it is stored as `dtype`.
double stored(double x, DType dtype) {
  float narrow = static_cast<float>(x);
  return static_cast<double>(dtype == DType::bf16 ? bf16_value(bf16_bits(narrow)) : narrow);
}

Numbers stored(Numbers numbers, DType dtype) {
  for (double& x : numbers) x = stored(x, dtype);
  return numbers;
}

Numbers draw(int64_t count, DType dtype, std::string_view name) {
  Random random(3, name, 0);
  Numbers numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = stored(random.normal(i), dtype);
  return numbers;
}

Words words_of(const Numbers& numbers, DType dtype) {
  size_t size = static_cast<size_t>(size_of(dtype));
  Words words(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    float real = static_cast<float>(numbers[i]);
    int32_t whole = static_cast<int32_t>(numbers[i]);
    uint16_t half = bf16_bits(real);
    const void* from = dtype == DType::bf16  ? static_cast<const void*>(&half)
                       : dtype == DType::i32 ? &whole
                                             : static_cast<const void*>(&real);
    std::memcpy(words.data() + i * size, from, size);
  }
  return words;
}

Numbers numbers_at(const Tensor& tensor) {
  size_t size = static_cast<size_t>(size_of(tensor.dtype));
  Words words = words_at(tensor.data, static_cast<size_t>(tensor.count()) * size);
  Numbers numbers(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    float real = 0;
    uint16_t half = 0;
    std::memcpy(tensor.dtype == DType::bf16 ? static_cast<void*>(&half) : &real, words.data() + i * size, size);
    numbers[i] = static_cast<double>(tensor.dtype == DType::bf16 ? bf16_value(half) : real);
  }
  return numbers;
}

// One op of a Program; its operands lie on the mesh as `layouts` say, inputs first.
struct OneOp {
  const OpDef& def;
  Attrs attrs;
  TensorTypes inputs;
  Mesh mesh = {};
  std::vector<Layout> layouts = {};  // empty: every rank has all of everything

  Program program() const {
    Program program{.name = "one", .mesh = mesh};
    Op op{.def = &def, .attrs = attrs, .path = std::string(def.name)};
    TensorTypes types = inputs;
    for (const TensorType& type : infer_types(def, attrs, inputs)) types.push_back(type);
    for (size_t i = 0; i < types.size(); ++i) {
      Value value{.id = static_cast<ValueId>(i), .dtype = types[i].dtype, .shape = types[i].shape};
      value.layout = layouts.empty() ? invariant_layout(mesh) : layouts[i];
      value.local = local_shape(value.shape, value.layout, mesh);
      program.values.push_back(value);
      (i < inputs.size() ? op.inputs : op.outputs).push_back(value.id);
    }
    program.regions = {{.ops = {op}}};
    return program;
  }
};

// The op's outputs. What it does not write is NaN.
std::vector<Numbers> run_on_device(CudaDevice& device, const OneOp& one, const std::vector<Numbers>& inputs,
                                   int rank = 0) {
  Program program = one.program();
  const Op& op = program.regions[0].ops[0];
  std::vector<DeviceBytes> memory;
  std::vector<Tensor> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = program[op.inputs[i]];
    in.push_back({memory.emplace_back(words_of(inputs[i], value.dtype)).data(), value.dtype, value.local});
  }
  for (ValueId id : op.outputs) {
    const Value& value = program[id];
    void* data = nullptr;
    for (const Alias& alias : aliases_of(op))
      if (alias.output == static_cast<int>(out.size())) data = in[static_cast<size_t>(alias.input)].data;
    if (!data) data = memory.emplace_back(Words(static_cast<size_t>(value.local_bytes().n), std::byte{0xff})).data();
    out.push_back({data, value.dtype, value.local});
  }
  const CudaKernel& kernel = cuda_kernel(*op.def);
  Bytes scratch = planned_scratch(*op.def, op.attrs, in, out, device.determinism());
  auto* workspace =
      static_cast<std::byte*>(memory.emplace_back(Words(static_cast<size_t>(scratch.n), std::byte{0xff})).data());
  CudaCall call{in, out, op.attrs, workspace, device, device.stream()};
  if (kernel.prepare)
    kernel.prepare({op, program, rank, coordinate_of(program.mesh, rank), in, out, device})->launch(call);
  else
    kernel.launch(call);
  check_cuda(cudaGetLastError(), "launching");
  check_cuda(cudaStreamSynchronize(device.stream()), "running");
  std::vector<Numbers> results;
  for (const Tensor& tensor : out) results.push_back(numbers_at(tensor));
  return results;
}

// One problem, its numbers, and what the CPU makes of it.
struct Problem {
  Problem(const AttentionShape& shape, DType type, Alibi alibi = Alibi::none, Numbers document_begins = {})
      : s(shape), dtype(type), begins(std::move(document_begins)) {
    if (s.window > 0) attrs.set("window", s.window);
    if (alibi == Alibi::added) attrs.set("alibi", int64_t{1});
    qkv = draw(s.batch * s.length * width(), dtype, "qkv");
    dy = draw(s.batch * s.length * y_width(), dtype, "dy");
    TensorTypes types{{DType::f64, qkv_shape()}};
    std::vector<Numbers> inputs{qkv};
    if (!begins.empty()) types.push_back(begins_type()), inputs.push_back(begins);
    auto forward = run_kernel({ops::attention, attrs, types, inputs});
    y = forward[0];
    lse = forward[1];
    types = {{DType::f64, y_shape()}, {DType::f64, qkv_shape()}, {DType::f64, y_shape()}, {DType::f64, lse_shape()}};
    inputs = {dy, qkv, y, lse};
    if (!begins.empty()) types.push_back(begins_type()), inputs.push_back(begins);
    dqkv = run_kernel({ops::attention_backward, attrs, types, inputs})[0];
  }

  int64_t width() const { return (s.heads + 2 * s.kv_heads) * s.head_dim; }
  int64_t y_width() const { return s.heads * s.head_dim; }
  GlobalShape qkv_shape() const { return {s.batch, s.length, width()}; }
  GlobalShape y_shape() const { return {s.batch, s.length, y_width()}; }
  GlobalShape kv_shape() const { return {s.batch, s.length, width() - y_width()}; }
  GlobalShape lse_shape() const { return {s.batch, s.heads, s.length}; }
  TensorType begins_type() const { return {DType::i32, {s.batch, s.length}}; }
  std::string text() const {
    return fmt::format("{} b{} s{} h{} kv{} d{} w{}{}{}", name_of(dtype), s.batch, s.length, s.heads, s.kv_heads,
                       s.head_dim, s.window, attrs.has("alibi") ? " alibi" : "", begins.empty() ? "" : " documents");
  }

  OneOp forward() const { return {ops::attention, attrs, {{dtype, qkv_shape()}}}; }
  OneOp backward() const {
    return {ops::attention_backward,
            attrs,
            {{dtype, y_shape()}, {dtype, qkv_shape()}, {dtype, y_shape()}, {DType::f32, lse_shape()}}};
  }
  std::vector<Numbers> backward_inputs() const { return {dy, qkv, stored(y, dtype), lse}; }

  AttentionShape s;
  DType dtype;
  Attrs attrs{{"heads", s.heads}, {"kv_heads", s.kv_heads}, {"head_dim", s.head_dim}};
  Numbers begins;  // of documents; empty: one a sequence
  Numbers qkv, dy, y, lse, dqkv;
};

void expect_like_cpu(CudaDevice& device, const Problem& problem) {
  auto forward = run_on_device(device, problem.forward(), {problem.qkv});
  EXPECT_LT(relative_error(forward[0], problem.y), tolerance(problem.dtype)) << problem.text() << ": y";
  EXPECT_LT(relative_error(forward[1], problem.lse), tolerance(problem.dtype)) << problem.text() << ": lse";
  auto backward = run_on_device(device, problem.backward(), problem.backward_inputs());
  EXPECT_LT(relative_error(backward[0], problem.dqkv), tolerance(problem.dtype)) << problem.text() << ": dqkv";
}

const std::vector<AttentionShape> kUsual{{2, 128, 4, 2, 64, 64}, {2, 512, 8, 8, 128, 128}, {1, 1024, 12, 12, 64, 64}};
const std::vector<AttentionShape> kOdd{{1, 200, 2, 2, 16, 16},  {2, 33, 3, 1, 7, 7},  {1, 130, 2, 1, 96, 96},
                                       {1, 70, 2, 2, 256, 256}, {3, 1, 2, 2, 64, 64}, {2, 65, 4, 4, 130, 130}};

TEST_F(CudaAttention, OwnKernelsAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  for (const auto* shapes : {&kUsual, &kOdd})
    for (const AttentionShape& shape : *shapes) expect_like_cpu(device, {shape, DType::f32});
}

TEST_F(CudaAttention, Bf16AsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  for (const AttentionShape& shape : kOdd) expect_like_cpu(device, {shape, DType::bf16});
}

TEST_F(CudaAttention, LibraryAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  if (!device.attention().problem().empty()) GTEST_SKIP() << device.attention().problem();
  for (const AttentionShape& shape : kUsual) {
    EXPECT_NE(device.attention().forward(shape), nullptr) << "cuDNN " << shape.length;
    EXPECT_NE(device.attention().backward(shape), nullptr) << "cuDNN " << shape.length;
    expect_like_cpu(device, {shape, DType::bf16});
  }
}

// A query's own key alone, a few, some tiles, all but one.
std::vector<AttentionShape> with_windows(const std::vector<AttentionShape>& shapes) {
  std::vector<AttentionShape> windowed;
  for (AttentionShape shape : shapes)
    for (int64_t window : {int64_t{1}, int64_t{5}, int64_t{100}, shape.length - 1})
      if (window > 0 && window < shape.length) {
        shape.window = window;
        windowed.push_back(shape);
      }
  return windowed;
}

TEST_F(CudaAttention, WindowsAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  for (const auto* shapes : {&kUsual, &kOdd})
    for (const AttentionShape& shape : with_windows(*shapes))
      for (DType dtype : {DType::f32, DType::bf16}) expect_like_cpu(device, {shape, dtype});
}

TEST_F(CudaAttention, WindowsGoToTheLibrary) {
  CudaDevice device(0, Determinism::fast);
  if (!device.attention().problem().empty()) GTEST_SKIP() << device.attention().problem();
  for (const AttentionShape& shape : with_windows(kUsual)) {
    EXPECT_NE(device.attention().forward(shape), nullptr) << "cuDNN " << shape.length << " " << shape.window;
    EXPECT_NE(device.attention().backward(shape), nullptr) << "cuDNN " << shape.length << " " << shape.window;
  }
}

TEST_F(CudaAttention, RepeatableGivesTheSameBits) {
  CudaDevice device(0, Determinism::repeatable);
  for (DType dtype : {DType::f32, DType::bf16})
    for (const AttentionShape& shape :
         {AttentionShape{4, 512, 4, 2, 64, 64}, AttentionShape{3, 1024, 2, 2, 64, 64},
          AttentionShape{
              .batch = 3, .length = 512, .heads = 4, .kv_heads = 2, .head_dim = 64, .value_dim = 64, .window = 100}}) {
      Problem problem(shape, dtype);
      expect_like_cpu(device, problem);
      auto once = run_on_device(device, problem.backward(), problem.backward_inputs());
      auto again = run_on_device(device, problem.backward(), problem.backward_inputs());
      EXPECT_EQ(once[0], again[0]) << problem.text();
    }
}

// Several positions first, then one, into caches that hold more.
TEST_F(CudaAttention, CachesAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  struct Case {
    int64_t heads, kv_heads, dim, prefill, capacity, window = 0;
  };
  for (DType dtype : {DType::f32, DType::bf16})
    for (Case c : {Case{4, 2, 4, 5, 9}, Case{4, 4, 64, 70, 128}, Case{6, 2, 128, 17, 20}, Case{4, 2, 4, 5, 9, 3},
                   Case{4, 4, 64, 70, 128, 40}}) {
      Attrs attrs{{"heads", c.heads}, {"kv_heads", c.kv_heads}, {"head_dim", c.dim}};
      if (c.window > 0) attrs.set("window", c.window);
      GlobalShape cache{2, c.kv_heads, c.capacity, c.dim};
      Numbers keys = draw(cache.count(), dtype, "keys"), values = draw(cache.count(), dtype, "values");
      int64_t start = 0;
      for (int64_t length : {c.prefill, int64_t{1}, int64_t{1}}) {
        GlobalShape shape{2, length, (c.heads + 2 * c.kv_heads) * c.dim};
        std::vector<Numbers> inputs{
            draw(shape.count(), dtype, fmt::format("at {}", start)), keys, values, {static_cast<double>(start)}};
        TensorTypes types{{dtype, shape}, {dtype, cache}, {dtype, cache}, {DType::i32, {}}}, wide = types;
        for (size_t i = 0; i < 3; ++i) wide[i].dtype = DType::f64;
        auto truth = run_kernel({ops::attention_cached, attrs, wide, inputs});
        auto got = run_on_device(device, {ops::attention_cached, attrs, types}, inputs);
        EXPECT_LT(relative_error(got[0], truth[0]), tolerance(dtype)) << c.dim << " at " << start;
        EXPECT_EQ(got[1], truth[1]) << "keys of " << c.dim << " at " << start;
        EXPECT_EQ(got[2], truth[2]) << "values of " << c.dim << " at " << start;
        keys = got[1];
        values = got[2];
        start += length;
      }
    }
}

// The elements of [outer, length, inner] whose positions a rank holds, in its order.
Numbers held_rows(const Numbers& whole, int64_t length, int64_t inner, const std::vector<Span>& spans) {
  Numbers part;
  for (int64_t outer = 0; outer < static_cast<int64_t>(whole.size()) / (length * inner); ++outer)
    for (const Span& span : spans)
      for (int64_t i = 0; i < span.count; ++i) {
        auto from = whole.begin() + (outer * length + span.global_at(i)) * inner;
        part.insert(part.end(), from, from + inner);
      }
  return part;
}

Numbers columns(const Numbers& rows, int64_t width, int64_t from, int64_t count) {
  Numbers part;
  for (auto row = rows.begin(); row != rows.end(); row += width)
    part.insert(part.end(), row + from, row + from + count);
  return part;
}

// All ranks of a ring, one after the other on one device; what travels is handed on by hand.
class Ring {
 public:
  Ring(CudaDevice& device, const Problem& problem, int ranks, ShardOrder order)
      : device_(device), p_(problem), mesh_{{{"cp", ranks}}}, order_(order) {
    Layout rows = split(1);
    for (int rank = 0; rank < ranks; ++rank) {
      spans_.push_back(held(p_.s.length, rows, 1, mesh_, {rank}));
      qkv_.push_back(local(p_.qkv, p_.width(), rank));
      kv_.push_back(columns(qkv_.back(), p_.width(), p_.y_width(), p_.width() - p_.y_width()));
    }
  }

  void expect_forward() {
    for (int rank = 0; rank < ranks(); ++rank) {
      std::vector<Numbers> so_far;
      for (int step = 0; step < ranks(); ++step) {
        OneOp op{ops::attention_step, attrs(step), {{p_.dtype, p_.qkv_shape()}, {p_.dtype, p_.kv_shape()}}, mesh_};
        std::vector<Numbers> inputs{qkv_[at(rank)], kv_[visitor(rank, step)]};
        op.layouts = {split(1), split(1)};
        if (!p_.begins.empty()) {
          op.inputs.push_back(p_.begins_type());
          op.layouts.push_back(split(1));
          inputs.push_back(local(p_.begins, 1, rank));
        }
        if (step > 0) {
          op.inputs.insert(op.inputs.end(), {{p_.dtype, p_.y_shape()}, {DType::f32, p_.lse_shape()}});
          op.layouts.insert(op.layouts.end(), {split(1), split(2)});
        }
        op.layouts.insert(op.layouts.end(), {split(1), split(2)});
        inputs.insert(inputs.end(), so_far.begin(), so_far.end());
        so_far = run_on_device(device_, op, inputs, rank);
      }
      EXPECT_LT(relative_error(so_far[0], local(p_.y, p_.y_width(), rank)), tolerance(p_.dtype)) << text(rank) << ": y";
      EXPECT_LT(relative_error(so_far[1], local(p_.lse, 1, rank)), tolerance(p_.dtype)) << text(rank) << ": lse";
    }
  }

  void expect_backward() {
    std::vector<Numbers> dq(spans_.size()), dkv(spans_.size());
    for (int step = 0; step < ranks(); ++step)
      for (int rank = 0; rank < ranks(); ++rank) {
        Attrs with = attrs(step);
        with.set("backward", int64_t{1});
        TensorTypes types{{p_.dtype, p_.y_shape()},
                          {p_.dtype, p_.qkv_shape()},
                          {p_.dtype, p_.y_shape()},
                          {DType::f32, p_.lse_shape()},
                          {p_.dtype, p_.kv_shape()}};
        std::vector<Numbers> inputs{local(p_.dy, p_.y_width(), rank), qkv_[at(rank)],
                                    stored(local(p_.y, p_.y_width(), rank), p_.dtype), local(p_.lse, 1, rank),
                                    kv_[visitor(rank, step)]};
        if (!p_.begins.empty()) types.push_back(p_.begins_type()), inputs.push_back(local(p_.begins, 1, rank));
        if (step > 0) {
          types.insert(types.end(), {{p_.dtype, p_.y_shape()}, {p_.dtype, p_.kv_shape()}});
          inputs.insert(inputs.end(), {dq[at(rank)], dkv[visitor(rank, step)]});
        }
        OneOp op{ops::attention_step_backward, with, types, mesh_, std::vector<Layout>(types.size() + 2, split(1))};
        op.layouts[3] = split(2);
        auto got = run_on_device(device_, op, inputs, rank);
        dq[at(rank)] = got[0];
        dkv[visitor(rank, step)] = got[1];
      }
    for (int rank = 0; rank < ranks(); ++rank) {
      Numbers truth = local(p_.dqkv, p_.width(), rank);
      EXPECT_LT(relative_error(dq[at(rank)], columns(truth, p_.width(), 0, p_.y_width())), tolerance(p_.dtype))
          << text(rank) << ": dq";
      EXPECT_LT(relative_error(dkv[at(rank)], columns(truth, p_.width(), p_.y_width(), p_.width() - p_.y_width())),
                tolerance(p_.dtype))
          << text(rank) << ": dkv";
    }
  }

 private:
  int ranks() const { return mesh_.size(0); }
  static size_t at(int rank) { return static_cast<size_t>(rank); }
  size_t visitor(int rank, int step) const { return at((rank - step + ranks()) % ranks()); }
  Numbers local(const Numbers& whole, int64_t inner, int rank) const {
    return held_rows(whole, p_.s.length, inner, spans_[at(rank)]);
  }
  Attrs attrs(int step) const {
    Attrs attrs = p_.attrs;
    attrs.set("step", int64_t{step});
    attrs.set("axis", std::string("cp"));
    if (p_.s.window > 0) attrs.set("ranks", int64_t{ranks()});
    if (!p_.begins.empty()) attrs.set("documents", int64_t{1});
    return attrs;
  }
  Layout split(int dim) const { return {.states = {{StateKind::sharded, dim, order_}}}; }
  std::string text(int rank) const {
    return fmt::format("{}, rank {} of {}, {}", p_.text(), rank, ranks(), split(1).states[0].text());
  }

  CudaDevice& device_;
  const Problem& p_;
  Mesh mesh_;
  ShardOrder order_;
  std::vector<std::vector<Span>> spans_;
  std::vector<Numbers> qkv_, kv_;
};

void expect_rings(CudaDevice& device, const Problem& problem) {
  for (int ranks : {1, 2, 3, 4}) {
    if (problem.s.length % (2 * ranks) != 0) continue;
    for (ShardOrder order : {ShardOrder::zigzag, ShardOrder::striped}) {
      Ring ring(device, problem, ranks, order);
      ring.expect_forward();
      ring.expect_backward();
    }
  }
}

TEST_F(CudaAttention, RingsAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  for (DType dtype : {DType::f32, DType::bf16})
    for (const AttentionShape& shape : {AttentionShape{2, 128, 4, 2, 64, 64}, AttentionShape{1, 264, 2, 2, 16, 16}})
      for (Alibi alibi : {Alibi::none, Alibi::added}) expect_rings(device, Problem(shape, dtype, alibi));
}

// Windows shorter than a rank's piece, about as long as one, and over several: some blocks of keys are seen by some
// queries only, or by none.
TEST_F(CudaAttention, RingsWithWindowsAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t window : {2, 9, 33, 70, 200})
      expect_rings(device,
                   {{.batch = 1, .length = 264, .heads = 4, .kv_heads = 2, .head_dim = 16, .window = window}, dtype});
}

// Documents shorter than the ring, about as long as a tile, and one that fills the sequence.
TEST_F(CudaAttention, RingsWithDocumentsAsOnTheCpu) {
  CudaDevice device(0, Determinism::fast);
  const std::vector<std::vector<int64_t>> sequences{{1, 2, 61, 3, 130, 67}, {264}};
  Numbers begins;
  for (const std::vector<int64_t>& documents : sequences)
    for (int64_t first = 0; int64_t length : documents) {
      begins.insert(begins.end(), static_cast<size_t>(length), static_cast<double>(first));
      first += length;
    }
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t window : {0, 40})
      for (Alibi alibi : {Alibi::none, Alibi::added})
        expect_rings(device, {{.batch = 2, .length = 264, .heads = 4, .kv_heads = 2, .head_dim = 64, .window = window},
                              dtype,
                              alibi,
                              begins});
}

TEST_F(CudaAttention, PackedRowsAreTakenApartAndJoined) {
  CudaDevice device(0, Determinism::fast);
  for (DType dtype : {DType::f32, DType::bf16}) {
    Problem p({2, 9, 3, 1, 7}, dtype);
    auto kv = run_on_device(device, {ops::kv_of, p.attrs, {{dtype, p.qkv_shape()}}}, {p.qkv});
    EXPECT_EQ(kv[0], columns(p.qkv, p.width(), p.y_width(), p.width() - p.y_width()));
    OneOp join{ops::join_qkv, p.attrs, {{dtype, p.y_shape()}, {dtype, p.kv_shape()}}};
    EXPECT_EQ(run_on_device(device, join, {columns(p.qkv, p.width(), 0, p.y_width()), kv[0]})[0], p.qkv);
  }
}

}  // namespace
}  // namespace sextant
