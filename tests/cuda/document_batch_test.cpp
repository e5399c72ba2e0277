// Attention over documents as ragged batches, on the device, against the CPU's kernel in f64 on the same numbers, over
// random splits: one document, documents of one token, as many as the batch holds, more than it holds, and begins that
// are no documents. And what the device finds of documents, number by number.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

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
  Splits over = full;  // of the first part
  over[3] = {40, 80, 100, 128};
  ASSERT_EQ(count_of(over), 13);
  Splits singles(4);
  for (auto& ends : singles)
    for (int64_t end = 1; end <= length; ++end) ends.push_back(end);
  Numbers none = begins_of_splits(full);
  for (size_t i = 0; i < none.size(); i += 5) none[i] = static_cast<double>(i % 128 / 2);
  for (CudaDevice* device : {&fast_device(), &this->device()})
    for (const Numbers& begins : {begins_of_splits(full), begins_of_splits(over), begins_of_splits(singles), none})
      expect_ragged_like_cpu(shape, begins, DType::bf16, *device);
}

// A few long documents beside so many short ones that no batch holds all: each goes to that of its length.
TEST_F(CudaDocumentBatch, LongDocumentsBesideShortOnes) {
  const int64_t length = 1500;
  Splits mixed{{700, 830, 860, 890, 900, 1500}, {1, 600, 601, 640, 800, 1500}, {20, 40, 60, 80, 1100, 1500}, {1500}};
  for (int64_t sequence_documents : {2, 4})  // room for the four long ones in the first part, and in the second
    for (CudaDevice* device : {&fast_device(), &this->device()}) {
      RaggedShape shape{.length = length, .dim = 64, .sequence_documents = sequence_documents};
      expect_ragged_like_cpu(shape, begins_of_splits(mixed), DType::bf16, *device);
    }
}

// The documents found in one batch.
struct FoundPart {
  std::vector<int32_t> lengths;
  std::vector<int64_t> firsts;
};
struct FoundDocuments {
  cuda::DocumentWay way = cuda::DocumentWay::own;
  std::array<FoundPart, cuda::kDocumentParts> parts = {};
};

// The same on the host; of documents that do not fit, none.
FoundDocuments found_on_the_host(const Splits& splits, int64_t length,
                                 const std::array<cuda::DocumentPart, cuda::kDocumentParts>& parts) {
  auto is_long = [](int64_t tokens) { return tokens > 512; };
  int64_t all = count_of(splits), longer = 0;
  auto each = [&](auto&& visit) {
    for (size_t b = 0; b < splits.size(); ++b)
      for (int64_t begin = 0; int64_t end : splits[b]) {
        visit(static_cast<int64_t>(b) * length + begin, end - begin);
        begin = end;
      }
  };
  each([&](int64_t, int64_t tokens) { longer += is_long(tokens); });
  const bool all_in_one = all <= parts[0].room, few = longer <= parts[1].room;
  using enum cuda::DocumentWay;
  FoundDocuments found{.way = all_in_one ? together : longer == 0 ? none_long : few ? few_long : many_long};
  each([&](int64_t first, int64_t tokens) {
    size_t part = all_in_one ? 0 : is_long(tokens) ? (few ? 1 : 0) : tokens > 128 ? 2 : 3;
    found.parts[part].lengths.push_back(static_cast<int32_t>(tokens));
    found.parts[part].firsts.push_back(first);
  });
  for (size_t part = 0; part < parts.size(); ++part)
    if (std::ssize(found.parts[part].lengths) > parts[part].room) return {};
  return found;
}

// Lengths, offsets and the way, against a count on the host, of documents short and long.
TEST_F(CudaDocumentBatch, FindsDocuments) {
  std::set<cuda::DocumentWay> seen;
  for (int64_t length : {1, 31, 256, 257, 1000, 3000})
    for (int64_t sequence_documents : {1, 3, 5, 40}) {
      RaggedShape shape{.length = length, .dim = 64, .sequence_documents = sequence_documents};
      AttentionShape sizes = shape.library(DType::bf16);
      const auto parts = cuda::document_parts(sizes);
      Splits splits = random_splits(4, length, 90, static_cast<uint64_t>(length + sequence_documents));
      if (length == 3000) splits[0] = {3000};
      if (length == 3000 && sequence_documents == 3) splits[2] = splits[3] = {700, 1500, 2600, 2700, 3000};
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
      FoundDocuments found = found_on_the_host(splits, length, parts);
      const bool fits = found.way != cuda::DocumentWay::own;
      seen.insert(found.way);
      EXPECT_EQ(read(batch.fits, 1)[0], fits);
      EXPECT_EQ(read(batch.way, 1)[0], static_cast<int32_t>(found.way));
      for (size_t part = 0; part < cuda::kDocumentParts; ++part) {
        SCOPED_TRACE(fmt::format("length {}, {} documents of a sequence, part {}", length, sequence_documents, part));
        FoundPart expected = found.parts[part];
        EXPECT_TRUE(expected.lengths.empty() || cuda::has_documents(found.way, part));
        expected.lengths.resize(static_cast<size_t>(parts[part].room), 0);
        expected.firsts.resize(static_cast<size_t>(parts[part].room) + 1, fits ? 4 * length : 0);
        EXPECT_EQ(read(batch.lengths[part], parts[part].room), expected.lengths);
        for (size_t rows = 0; rows < cuda::kDocumentRows; ++rows) {
          std::vector<int64_t> offsets = expected.firsts;
          for (int64_t& at : offsets) at *= batch.widths[rows];
          EXPECT_EQ(read(batch.offsets[part][rows], parts[part].room + 1), offsets) << rows;
        }
      }
      EXPECT_TRUE(scratch.end_is_whole());
    }
  EXPECT_EQ(seen.size(), cuda::kDocumentWays);
}

// Says which way the figures above have gone, and that cuDNN has a plan where it should.
TEST_F(CudaDocumentBatch, GoesThroughTheLibrary) {
  if (!device().attention().problem().empty()) GTEST_SKIP() << device().attention().problem();
  for (DType dtype : {DType::bf16, DType::f16})
    for (RaggedShape shape : {RaggedShape{1024, 64, 12, 12, 0, 3}, RaggedShape{4096, 64, 32, 8, 0, 9},
                              RaggedShape{1024, 128, 8, 2, 256, 3}}) {
      const char* ways[] = {"the masked plan or our own kernel", "ragged batches"};
      bool repeatable = true;
      for (const cuda::DocumentPart& part : cuda::document_parts(shape.library(dtype))) {
        AttentionShape batch = cuda::shape_of_part(shape.library(dtype), part);
        EXPECT_NE(fast_device().attention().forward(batch), nullptr) << shape.text() << " up to " << part.longest;
        EXPECT_NE(fast_device().attention().backward(batch), nullptr) << shape.text() << " up to " << part.longest;
        repeatable = repeatable && device().attention().backward(batch);
      }
      std::printf("  %s, repeatable backward by %s\n", shape.text().c_str(), ways[repeatable]);
    }
}

}  // namespace
}  // namespace sextant
