// Attention over documents as a ragged batch, on the device, against the CPU's kernel in f64 on the same numbers, over
// random splits: one document, documents of one token, as many as the batch holds, more than it holds, and begins that
// are no documents. And what the device finds of documents, number by number.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "cuda/device_runner.h"
#include "exec/cuda/attention/attention_library.h"
#include "exec/cuda/attention/document_batch.h"
#include "exec/cuda/runtime/check.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

// Sequences, of each where documents end.
using Splits = std::vector<std::vector<int64_t>>;

Numbers begins_of_splits(const Splits& splits) {
  Numbers begins;
  for (const std::vector<int64_t>& ends : splits) {
    int64_t begin = 0;
    for (int64_t end : ends) {
      begins.insert(begins.end(), static_cast<size_t>(end - begin), static_cast<double>(begin));
      begin = end;
    }
  }
  return begins;
}

// Documents of `mean` tokens on average, at random.
Splits random_splits(int64_t batch, int64_t length, int64_t mean, uint64_t seed) {
  Random random(seed, "splits");
  Splits splits;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<int64_t>& ends = splits.emplace_back();
    for (int64_t at = 1; at < length; ++at)
      if (random.below(static_cast<uint64_t>(b * length + at), static_cast<uint64_t>(mean)) == 0) ends.push_back(at);
    ends.push_back(length);
  }
  return splits;
}

Splits one_document_each(int64_t batch, int64_t length) {
  return Splits(static_cast<size_t>(batch), {length});
}

int64_t count_of(const Splits& splits) {
  int64_t count = 0;
  for (const auto& ends : splits) count += std::ssize(ends);
  return count;
}

struct RaggedShape {
  int64_t length, dim, heads = 4, kv_heads = 2, window = 0;
  int64_t sequence_documents = 4;

  static constexpr int64_t kBatch = 4;
  TensorType qkv() const { return f64({kBatch, length, (heads + 2 * kv_heads) * dim}); }
  TensorType y() const { return f64({kBatch, length, heads * dim}); }
  TensorType lse() const { return f64({kBatch, heads, length}); }
  TensorType begins() const { return i32({kBatch, length}); }
  Attrs attrs() const {
    Attrs attrs{{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}};
    if (window > 0) attrs.set("window", window);
    attrs.set("sequence_documents", sequence_documents);
    return attrs;
  }
  AttentionShape library(DType dtype) const {
    return {.batch = kBatch,
            .length = length,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = dim,
            .value_dim = dim,
            .documents = Documents::apart,
            .window = window,
            .dtype = dtype,
            .capacity = kBatch * sequence_documents};
  }
  std::string text() const {
    return fmt::format("s{} h{} kv{} d{} w{} c{}", length, heads, kv_heads, dim, window, sequence_documents);
  }
};

struct Ragged {
  std::vector<Numbers> here, exact;
};

Ragged ragged_both(KernelRun run, CudaDevice& device) {
  run.inputs = rounded_inputs(run);
  Ragged results{run_cuda_kernel(run, device), {}};
  run.real = DType::f64;
  results.exact = run_kernel(run);
  return results;
}

void expect_ragged_like_cpu(const RaggedShape& shape, const Numbers& begins, DType real, CudaDevice& device) {
  SCOPED_TRACE(fmt::format("{} {}", name_of(real), shape.text()));
  const double tolerance = 1e-2;
  std::vector<Numbers> drawn = draw_inputs(ops::attention, {"", {shape.qkv(), shape.y()}, shape.attrs()});
  Ragged y = ragged_both({.def = ops::attention,
                          .attrs = shape.attrs(),
                          .types = {shape.qkv(), shape.begins()},
                          .inputs = {drawn[0], begins},
                          .real = real},
                         device);
  EXPECT_LT(relative_error(y.here[0], y.exact[0]), tolerance) << "y";
  EXPECT_LT(relative_error(y.here[1], y.exact[1]), tolerance) << "lse";
  Ragged dqkv = ragged_both({.def = ops::attention_backward,
                             .attrs = shape.attrs(),
                             .types = {shape.y(), shape.qkv(), shape.y(), shape.lse(), shape.begins()},
                             .inputs = {drawn[1], drawn[0], y.exact[0], y.exact[1], begins},
                             .real = real},
                            device);
  EXPECT_LT(relative_error(dqkv.here[0], dqkv.exact[0]), tolerance) << "dqkv";
}

class CudaDocumentBatch : public OnDevice {};

TEST_F(CudaDocumentBatch, AsOnTheCpuOverRandomSplits) {
  for (CudaDevice* device : {&fast_device(), &this->device()})
    for (DType real : {DType::bf16, DType::f16})
      for (int64_t dim : {64, 128})
        for (int64_t kv_heads : {2, 4})
          for (int64_t length : {128, 300}) {
            RaggedShape shape{.length = length, .dim = dim, .kv_heads = kv_heads, .sequence_documents = 6};
            for (uint64_t seed : {1, 2})
              expect_ragged_like_cpu(shape, begins_of_splits(random_splits(4, length, length / 3, seed)), real,
                                     *device);
            expect_ragged_like_cpu(shape, begins_of_splits(one_document_each(4, length)), real, *device);
          }
}

TEST_F(CudaDocumentBatch, WindowsBesideDocuments) {
  for (int64_t window : {1, 17, 100}) {
    RaggedShape shape{.length = 256, .dim = 64, .window = window, .sequence_documents = 6};
    expect_ragged_like_cpu(shape, begins_of_splits(random_splits(4, 256, 80, 3)), DType::bf16, fast_device());
  }
}

// Documents of one token at both ends and all over; as many as there is room for; one more than that; begins that
// describe none.
TEST_F(CudaDocumentBatch, WhatDoesNotFitIsDoneOtherwise) {
  const int64_t length = 128;
  RaggedShape shape{.length = length, .dim = 64, .sequence_documents = 3};
  Splits full{{1, 127, 128}, {1, 2, 128}, {126, 127, 128}, {40, 80, 128}};
  ASSERT_EQ(count_of(full), 12);
  Splits over = full;
  over[3] = {40, 80, 100, 128};
  Splits singles(4);
  for (auto& ends : singles)
    for (int64_t end = 1; end <= length; ++end) ends.push_back(end);
  Numbers none = begins_of_splits(full);
  for (size_t i = 0; i < none.size(); i += 5) none[i] = static_cast<double>(i % 128 / 2);
  for (CudaDevice* device : {&fast_device(), &this->device()})
    for (const Numbers& begins : {begins_of_splits(full), begins_of_splits(over), begins_of_splits(singles), none})
      expect_ragged_like_cpu(shape, begins, DType::bf16, *device);
}

// Lengths, offsets and the verdict, against a count on the host.
TEST_F(CudaDocumentBatch, FindsDocuments) {
  for (int64_t length : {1, 31, 256, 257, 1000})
    for (int64_t sequence_documents : {1, 3, 40}) {
      RaggedShape shape{.length = length, .dim = 64, .sequence_documents = sequence_documents};
      AttentionShape sizes = shape.library(DType::bf16);
      Splits splits = random_splits(4, length, 90, static_cast<uint64_t>(length));
      cuda::DocumentBatchSizes layout(sizes, cuda::DocumentBatchSizes::Pass::forward);
      GuardedBytes scratch(layout.bytes), begins(4 * length * int64_t{sizeof(int32_t)});
      cuda::DocumentBatch batch(sizes, layout, static_cast<std::byte*>(scratch.data()));
      write_to_device({begins.data(), DType::i32, LocalShape({4, length})}, begins_of_splits(splits));
      cuda::find_documents(static_cast<const int32_t*>(begins.data()), batch, device().stream());
      check_cuda(cudaStreamSynchronize(device().stream()), "find");
      auto read = [&](auto* from, int64_t count) {
        std::vector<std::remove_pointer_t<decltype(from)>> host(static_cast<size_t>(count));
        check_cuda(cudaMemcpy(host.data(), from, host.size() * sizeof(host[0]), cudaMemcpyDeviceToHost), "read");
        return host;
      };
      const bool fits = count_of(splits) <= batch.capacity;
      std::vector<int32_t> lengths;
      std::vector<int64_t> firsts;
      for (size_t b = 0; fits && b < splits.size(); ++b)
        for (int64_t begin = 0; int64_t end : splits[b]) {
          lengths.push_back(static_cast<int32_t>(end - begin));
          firsts.push_back(static_cast<int64_t>(b) * length + begin);
          begin = end;
        }
      lengths.resize(static_cast<size_t>(batch.capacity), 0);
      firsts.resize(static_cast<size_t>(batch.capacity) + 1, fits ? 4 * length : 0);
      EXPECT_EQ(read(batch.fits, 1)[0], fits);
      EXPECT_EQ(read(batch.lengths, batch.capacity), lengths);
      for (size_t rows = 0; rows < cuda::kDocumentRows; ++rows) {
        std::vector<int64_t> offsets = firsts;
        for (int64_t& at : offsets) at *= batch.widths[rows];
        EXPECT_EQ(read(batch.offsets[rows], batch.capacity + 1), offsets) << rows;
      }
      EXPECT_TRUE(scratch.end_is_whole());
    }
}

// Says which way the figures above have gone, and that cuDNN has a plan where it should.
TEST_F(CudaDocumentBatch, GoesThroughTheLibrary) {
  if (!device().attention().problem().empty()) GTEST_SKIP() << device().attention().problem();
  for (DType dtype : {DType::bf16, DType::f16})
    for (RaggedShape shape : {RaggedShape{1024, 64, 12, 12, 0, 3}, RaggedShape{4096, 64, 32, 8, 0, 9},
                              RaggedShape{1024, 128, 8, 2, 256, 3}}) {
      EXPECT_NE(fast_device().attention().forward(shape.library(dtype)), nullptr) << shape.text();
      EXPECT_NE(fast_device().attention().backward(shape.library(dtype)), nullptr) << shape.text();
      const char* ways[] = {"the masked plan or our own kernel", "a ragged batch"};
      std::printf("  %s, repeatable backward by %s\n", shape.text().c_str(),
                  ways[device().attention().backward(shape.library(dtype)) != nullptr]);
    }
}

}  // namespace
}  // namespace sextant
