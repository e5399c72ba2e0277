#include "exec/cuda/attention/attention_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

#ifdef SEXTANT_CUDNN

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#include <dlfcn.h>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend looks its functions up here
}

namespace sextant {

namespace fe = cudnn_frontend;

namespace {

constexpr const char* kLibrary = "libcudnn.so.9";
constexpr size_t kOldest = 90600;       // from here on a backward plan clears its own sums
constexpr size_t kOddLengths = 91501;   // from here on lengths that are no multiple of 128 need no copies from the host
constexpr size_t kRaggedParts = 91900;  // 9.14 ends batches without documents in an illegal instruction; 9.19 does not
constexpr int64_t kTile = 128;          // positions
std::string version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Opened once and never closed: cuDNN leaves threads and static objects behind. Null when it is not there.
void* open_library() {
  static void* const library = fe::cudnn_dlhandle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return library;
}

// First line of a cuDNN error, which names the missing feature. Pages about each engine follow after a ruler and are
// cut.
std::string first_line(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  line.erase(line.find_last_not_of('_') + 1);
  if (std::string_view rest = " for "; line.ends_with(rest)) line.erase(line.size() - rest.size());
  return line;
}

// The numbers by which a plan's tensors are found when it runs.
// Those of a ragged batch: the offsets of an operand have its number and kOffsets besides.
enum Operand : int64_t { kQ = 1, kK, kV, kY, kLse, kDy, kDq, kDk, kDv, kBegins, kLengthsQ, kLengthsK, kOffsets = 100 };

fe::DataType_t type_of(DType dtype) {
  return dtype == DType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
}

using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

// Heads of `dim` elements in packed rows of `width`, as cuDNN names dims: batch, head, position, element.
struct Packed {
  int64_t heads, dim, width;
};

// Batch entries attend only to themselves: sequences, or documents of a ragged batch. A document is no longer than a
// sequence.
int64_t batch_of(const AttentionShape& shape) {
  return shape.capacity > 0 ? shape.capacity : shape.batch;
}
// Length of the longest entry, rounded up to whole tiles for a ragged batch, where the lengths are passed separately.
int64_t length_of(const AttentionShape& shape) {
  return shape.capacity > 0 ? round_up(shape.longest, kTile) : shape.length;
}

// Sets what an operand looks like.
void describe(fe::graph::Tensor_attributes& tensor, Operand id, const AttentionShape& shape, Packed rows) {
  tensor.set_uid(id)
      .set_dim({batch_of(shape), rows.heads, length_of(shape), rows.dim})
      .set_stride({length_of(shape) * rows.width, rows.dim, rows.width, 1})
      .set_data_type(type_of(shape.dtype));
}

// Of a ragged batch the heads of a position stand side by side.
void describe_lse(fe::graph::Tensor_attributes& tensor, const AttentionShape& shape) {
  int64_t of_batch = shape.heads * length_of(shape);
  bool ragged = shape.capacity > 0;
  tensor.set_uid(kLse)
      .set_dim({batch_of(shape), shape.heads, length_of(shape), 1})
      .set_stride({of_batch, ragged ? 1 : length_of(shape), ragged ? shape.heads : 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

int64_t packed_width(const AttentionShape& shape) {
  return (shape.heads + shape.kv_heads) * shape.head_dim + shape.kv_heads * shape.value_dim;
}

using GraphPointer = std::shared_ptr<fe::graph::Graph>;

// Scores from which documents that share a sequence do not see each other, nor queries what comes after them: query i
// sees keys from begins[i] on, itself in any case, and none behind itself.
TensorPointer mask(const GraphPointer& graph, TensorPointer score, const TensorPointer& begins) {
  using Mode = fe::PointwiseMode_t;
  auto index = [&](const char* name, int64_t axis) {
    TensorPointer at = graph->pointwise(score, fe::graph::Pointwise_attributes()
                                                   .set_name(name)
                                                   .set_mode(Mode::GEN_INDEX)
                                                   .set_axis(axis)
                                                   .set_compute_data_type(fe::DataType_t::INT32));
    at->set_data_type(fe::DataType_t::INT32);
    return at;
  };
  auto judge = [&](const char* name, Mode mode, const TensorPointer& a, const TensorPointer& b) {
    TensorPointer verdict = graph->pointwise(
        a, b,
        fe::graph::Pointwise_attributes().set_name(name).set_mode(mode).set_compute_data_type(fe::DataType_t::BOOLEAN));
    verdict->set_data_type(fe::DataType_t::BOOLEAN);
    return verdict;
  };
  TensorPointer query = index("query", 2), key = index("key", 3);
  TensorPointer seen = judge("seen", Mode::LOGICAL_OR, judge("own_document", Mode::CMP_GE, key, begins),
                             judge("itself", Mode::CMP_GE, key, query));
  auto nothing =
      std::make_shared<fe::graph::Tensor_attributes>(fe::graph::attn::score_modifiers::get_negative_inf_value());
  score = graph->pointwise(score, nothing, seen,
                           fe::graph::Pointwise_attributes().set_name("documents").set_mode(Mode::BINARY_SELECT));
  return fe::graph::attn::score_modifiers::causal_mask(graph, score);
}

float scale_of(const AttentionShape& shape) {
  return shape.scale != 0 ? shape.scale : 1 / std::sqrt(static_cast<float>(shape.head_dim));
}

// One graph under construction, and the widths of its operands.
struct GraphWriter {
  explicit GraphWriter(const AttentionShape& s, int capability) : shape(s) {
    graph->set_io_data_type(type_of(s.dtype))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT)
        .set_sm_version(capability)
        // Our CUDA graphs never outlive the plans, so they need not hold on to them.
        .set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
  }

  TensorPointer input(Operand id, Packed rows) {
    fe::graph::Tensor_attributes tensor;
    describe(tensor, id, shape, rows);
    set_offsets(tensor, id);
    return graph->tensor(tensor);
  }
  void output(const TensorPointer& tensor, Operand id, Packed rows) {
    tensor->set_output(true);
    describe(*tensor, id, shape, rows);
    set_offsets(*tensor, id);
  }

  // Numbers of documents, in device memory.
  TensorPointer of_documents(int64_t id, int64_t count, fe::DataType_t type) {
    return graph->tensor(fe::graph::Tensor_attributes()
                             .set_uid(id)
                             .set_dim({count, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(type));
  }

  // Where the rows of each document begin.
  void set_offsets(fe::graph::Tensor_attributes& tensor, Operand id) {
    if (shape.capacity > 0)
      tensor.set_ragged_offset(of_documents(kOffsets + id, shape.capacity + 1, fe::DataType_t::INT64));
  }

  template <class Attributes>
  void set_mask(Attributes& attributes) {
    if (shape.documents == Documents::together || shape.capacity > 0) {
      if (shape.capacity > 0)
        attributes.set_padding_mask(true)
            .set_seq_len_q(of_documents(kLengthsQ, shape.capacity, fe::DataType_t::INT32))
            .set_seq_len_kv(of_documents(kLengthsK, shape.capacity, fe::DataType_t::INT32));
      attributes.set_causal_mask(true);
      if (shape.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(shape.window));
      return;
    }
    TensorPointer begins = graph->tensor(fe::graph::Tensor_attributes()
                                             .set_uid(kBegins)
                                             .set_dim({shape.batch, 1, shape.length, 1})
                                             .set_stride({shape.length, shape.length, 1, 1})
                                             .set_data_type(fe::DataType_t::INT32));
    // Where a score is masked its weight is 0, and so is its gradient: backward needs no more than the same scores.
    attributes.set_score_mod(
        [begins](GraphPointer part, TensorPointer score) { return mask(part, std::move(score), begins); });
  }

  void forward() {
    fe::graph::SDPA_attributes attributes;
    attributes.set_name("attention").set_generate_stats(true).set_attn_scale(scale_of(shape));
    set_mask(attributes);
    auto [y, lse] = graph->sdpa(input(kQ, q), input(kK, k), input(kV, v), attributes);
    output(y, kY, out);
    lse->set_output(true);
    describe_lse(*lse, shape);
    set_offsets(*lse, kLse);
  }

  void backward(Determinism determinism) {
    fe::graph::Tensor_attributes lse;
    describe_lse(lse, shape);
    set_offsets(lse, kLse);
    fe::graph::SDPA_backward_attributes attributes;
    attributes.set_name("attention_backward")
        .set_attn_scale(scale_of(shape))
        .set_deterministic_algorithm(determinism == Determinism::repeatable);
    set_mask(attributes);
    // Sums are as long as there are positions, not as documents of full length would be.
    if (shape.capacity > 0)
      attributes.set_max_total_seq_len_q(shape.batch * shape.length)
          .set_max_total_seq_len_kv(shape.batch * shape.length);
    auto [dq, dk, dv] = graph->sdpa_backward(input(kQ, q), input(kK, k), input(kV, v), input(kY, out), input(kDy, out),
                                             graph->tensor(lse), attributes);
    output(dq, kDq, q);
    bool apart = shape.capacity > 0 && cuda::has_own_kv_gradients(shape);
    output(dk, kDk, apart ? Packed{k.heads, k.dim, k.heads * k.dim} : k);
    output(dv, kDv, apart ? Packed{v.heads, v.dim, v.heads * v.dim} : v);
  }

  AttentionShape shape;
  int64_t width = packed_width(shape);
  Packed q{shape.heads, shape.head_dim, width}, k{shape.kv_heads, shape.head_dim, width},
      v{shape.kv_heads, shape.value_dim, width}, out{shape.heads, shape.value_dim, shape.heads*shape.value_dim};
  GraphPointer graph = std::make_shared<fe::graph::Graph>();
};

using Pointers = std::unordered_map<int64_t, void*>;

// Adds the tensors that only a plan for a ragged batch reads and writes.
void add_documents(const cuda::DocumentBatch& documents, size_t part, Pointers& pointers) {
  using cuda::DocumentRows;
  auto offsets = [&](Operand operand, DocumentRows rows) {
    pointers[kOffsets + operand] = documents.offsets[part][static_cast<size_t>(rows)];
  };
  for (Operand operand : {kQ, kK, kV, kDq}) offsets(operand, DocumentRows::qkv);
  for (Operand operand : {kY, kDy}) offsets(operand, DocumentRows::y);
  offsets(kLse, DocumentRows::stats);
  offsets(kDk, documents.dk ? DocumentRows::dk : DocumentRows::qkv);
  offsets(kDv, documents.dv ? DocumentRows::dv : DocumentRows::qkv);
  pointers[kLengthsQ] = pointers[kLengthsK] = documents.lengths[part];
  pointers[kLse] = documents.stats;
  if (documents.dk) pointers[kDk] = documents.dk;
  if (documents.dv) pointers[kDv] = documents.dv;
}

}  // namespace

// A graph for `shape.batch` sequences, which is run `parts` times for all of them.
struct AttentionPlan {
  AttentionShape shape;
  int64_t parts = 1;
  std::shared_ptr<fe::graph::Graph> graph;
  Bytes scratch;
};

struct AttentionLibrary::Opened {
  using Plans = std::map<AttentionShape, std::unique_ptr<AttentionPlan>>;  // null: cuDNN cannot

  explicit Opened(const CudaDevice& d) : device(d) {}
  ~Opened() {
    forward.clear();
    backward.clear();
    if (handle) fe::detail::destroy_handle(handle);
  }

  // Null, and `why`, when cuDNN has no plan for the graph that `write` makes.
  template <class Write>
  std::unique_ptr<AttentionPlan> build(const GraphWriter& writer, const Write& write, std::string& why) const {
    fe::graph::Graph& graph = *writer.graph;
    auto good = [&why](fe::error_t status) {
      if (status.is_bad()) why = first_line(status.get_message());
      return !status.is_bad();
    };
    try {
      write();
      if (!good(graph.validate()) || !good(graph.build_operation_graph(handle)) ||
          !good(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})) ||
          !good(graph.check_support()) || !good(graph.build_plans()))
        return nullptr;
      return std::make_unique<AttentionPlan>(
          AttentionPlan{writer.shape, 1, writer.graph, {graph.get_workspace_size()}});
    } catch (const std::runtime_error& error) {  // a function that this version of the library does not have
      why = error.what();
      return nullptr;
    }
  }

  // The next smaller part of a batch that divides it.
  static int64_t smaller_part(int64_t batch, int64_t part) {
    do --part;
    while (part > 1 && batch % part != 0);
    return part;
  }

  // Null too where it wants more scratch than was planned.
  template <class Write>
  std::unique_ptr<AttentionPlan> build_ragged(const AttentionShape& shape, cuda::DocumentBatchSizes::Pass pass,
                                              const Write& write, std::string& why) const {
    GraphWriter writer(shape, device.capability());
    std::unique_ptr<AttentionPlan> plan = build(
        writer, [&] { write(writer); }, why);
    int64_t planned = cuda::DocumentBatchSizes(shape, pass).library_bytes;
    if (!plan || plan->scratch.n <= planned) return plan;
    why = fmt::format("cuDNN needs {} bytes of scratch where {} are planned", plan->scratch.n, planned);
    return nullptr;
  }

  std::unique_ptr<AttentionPlan> build_backward(const AttentionShape& shape, std::string& why) const {
    if (shape.capacity > 0)
      return build_ragged(
          shape, cuda::DocumentBatchSizes::Pass::backward,
          [&](GraphWriter& writer) { writer.backward(device.determinism()); }, why);
    Determinism determinism = device.determinism();
    Bytes planned = cuda::attention_library_backward_scratch(shape, determinism);
    AttentionShape part = shape;
    auto estimate = [&] {
      return cuda::attention_library_backward_scratch(part, Determinism::fast) + cuda::repeatable_matrix(part);
    };
    while (determinism == Determinism::repeatable && part.batch > 1 && estimate() > planned)
      part.batch = smaller_part(shape.batch, part.batch);
    while (true) {
      GraphWriter writer(part, device.capability());
      std::unique_ptr<AttentionPlan> plan = build(
          writer, [&] { writer.backward(determinism); }, why);
      if (!plan) return nullptr;
      plan->parts = shape.batch / part.batch;
      if (plan->scratch <= planned) return plan;
      if (part.batch == 1) {
        std::string both =
            fmt::format("cuDNN needs {} bytes of scratch where {} are planned", plan->scratch.n, planned.n);
        if (determinism == Determinism::fast && !shape.masked())
          throw RunError("attention_backward", both, "another version of cuDNN may want less");
        why = both;
        return nullptr;
      }
      part.batch = smaller_part(shape.batch, part.batch);
    }
  }

  std::unique_ptr<AttentionPlan> build_forward(const AttentionShape& shape, std::string& why) const {
    if (shape.capacity > 0)
      return build_ragged(
          shape, cuda::DocumentBatchSizes::Pass::forward, [](GraphWriter& writer) { writer.forward(); }, why);
    GraphWriter writer(shape, device.capability());
    std::unique_ptr<AttentionPlan> plan = build(
        writer, [&] { writer.forward(); }, why);
    Bytes planned = cuda::attention_library_scratch(shape);
    if (!plan || plan->scratch <= planned) return plan;
    why = fmt::format("cuDNN needs {} bytes of scratch where {} are planned", plan->scratch.n, planned.n);
    if (!shape.masked()) throw RunError("attention", why, "another version of cuDNN may want less");
    return nullptr;
  }

  template <class Build>
  const AttentionPlan* find_or_build(Plans& plans, const AttentionShape& shape, const Build& build_plan) const {
    if (auto found = plans.find(shape); found != plans.end()) return found->second.get();
    std::string why;
    std::unique_ptr<AttentionPlan> plan;
    device.use();
    if (shape.capacity > 0 && fe::detail::get_backend_version() < kRaggedParts)
      why = fmt::format("cuDNN {} is too old for them, {} or newer is needed",
                        version_text(fe::detail::get_backend_version()), version_text(kRaggedParts));
    else if (shape.capacity == 0 && shape.length % 128 != 0 && fe::detail::get_backend_version() < kOddLengths)
      why = fmt::format("cuDNN {} is too old for {} positions, which is not a multiple of 128",
                        version_text(fe::detail::get_backend_version()), shape.length);
    else
      plan = build_plan(why);
    if (!plan)
      fmt::print(stderr,
                 "sextant: attention over {} positions with {} heads of {} goes without {}, which is slower: {}\n",
                 shape.length, shape.heads, shape.head_dim,
                 shape.capacity > 0 ? "cuDNN's ragged batches of documents" : "cuDNN", why);
    return plans.emplace(shape, std::move(plan)).first->second.get();
  }

  const CudaDevice& device;
  cudnnHandle_t handle = nullptr;
  Plans forward, backward;
};

AttentionLibrary::AttentionLibrary(const CudaDevice& device) {
  if (!open_library()) {
    problem_ = fmt::format("{} cannot be opened; it must be where the loader looks (LD_LIBRARY_PATH)", kLibrary);
  } else if (size_t version = fe::detail::get_backend_version(); version < kOldest) {
    problem_ = fmt::format("cuDNN {} is too old, {} or newer is needed", version_text(version), version_text(kOldest));
  } else {
    device.use();
    opened_ = std::make_unique<Opened>(device);
    cudnnStatus_t status = fe::detail::create_handle(&opened_->handle);
    if (status != CUDNN_STATUS_SUCCESS) {
      problem_ =
          fmt::format("cuDNN {} does not start: {}", version_text(version), fe::detail::get_error_string(status));
      opened_->handle = nullptr;
    }
  }
  if (!problem_.empty()) {
    opened_.reset();
    fmt::print(stderr, "sextant: attention goes without cuDNN, which is slower: {}\n", problem_);
  }
}

const AttentionPlan* AttentionLibrary::forward(const AttentionShape& shape) {
  if (!opened_) return nullptr;
  return opened_->find_or_build(opened_->forward, shape,
                                [&](std::string& why) { return opened_->build_forward(shape, why); });
}

const AttentionPlan* AttentionLibrary::backward(const AttentionShape& shape) {
  if (!opened_) return nullptr;
  return opened_->find_or_build(opened_->backward, shape,
                                [&](std::string& why) { return opened_->build_backward(shape, why); });
}

void AttentionLibrary::run(const AttentionPlan& plan, const AttentionOperands& operands, std::byte* workspace,
                           cudaStream_t stream) const {
  const AttentionShape& s = plan.shape;
  fe::detail::set_stream(opened_->handle, stream);
  for (int64_t part = 0; part < plan.parts; ++part) {
    // `element` of the rows of the part's first sequence.
    auto at = [&](void* data, int64_t width, int64_t element) -> void* {
      return data ? static_cast<std::byte*>(data) + (part * s.batch * s.length * width + element) * 2 : nullptr;
    };
    int64_t y_width = s.heads * s.value_dim, width = packed_width(s);
    int64_t k_at = s.heads * s.head_dim, v_at = k_at + s.kv_heads * s.head_dim;
    Pointers pointers{{kQ, at(operands.qkv, width, 0)},
                      {kK, at(operands.qkv, width, k_at)},
                      {kV, at(operands.qkv, width, v_at)},
                      {kY, at(operands.y, y_width, 0)},
                      {kLse, static_cast<float*>(operands.lse) + part * s.batch * s.heads * s.length},
                      {kDy, at(operands.dy, y_width, 0)},
                      {kDq, at(operands.dqkv, width, 0)},
                      {kDk, at(operands.dqkv, width, k_at)},
                      {kDv, at(operands.dqkv, width, v_at)}};
    if (operands.documents)
      add_documents(*operands.documents, operands.part, pointers);
    else if (operands.begins)
      pointers[kBegins] = const_cast<int32_t*>(operands.begins) + part * s.batch * s.length;
    fe::error_t status = plan.graph->execute(opened_->handle, pointers, workspace);
    if (status.is_bad()) throw RunError("attention", fmt::format("cuDNN: {}", status.get_message()));
  }
}

}  // namespace sextant

#else  // built without cuDNN's headers

namespace sextant {

struct AttentionPlan {};
struct AttentionLibrary::Opened {};

AttentionLibrary::AttentionLibrary(const CudaDevice&)
    : problem_("this program was built without cuDNN's frontend headers") {
  fmt::print(stderr, "sextant: attention goes without cuDNN, which is slower: {}\n", problem_);
}
const AttentionPlan* AttentionLibrary::forward(const AttentionShape&) {
  return nullptr;
}
const AttentionPlan* AttentionLibrary::backward(const AttentionShape&) {
  return nullptr;
}
void AttentionLibrary::run(const AttentionPlan&, const AttentionOperands&, std::byte*, cudaStream_t) const {
  BUG("attention has no plans without cuDNN");
}

}  // namespace sextant

#endif

namespace sextant {

AttentionLibrary::~AttentionLibrary() = default;

}  // namespace sextant
