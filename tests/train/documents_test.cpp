// Masks of documents in whole runs: every mesh agrees with one rank, the mask changes what is learned, and what is not
// there is refused.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "scratch_run.h"

namespace sextant {
namespace {

std::vector<std::string> settings(const std::vector<std::string>& more) {
  std::vector<std::string> all{"train.steps=6", "train.eval_every=6", "batch.sequences=4", "batch.microbatch=1",
                               "batch.seq=64",  "model.max_seq=64",   "model.layers=2",    "optimizer.eps=1e-6"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<double> numbers(const std::vector<std::string>& texts) {
  std::vector<double> values;
  for (const std::string& text : texts) values.push_back(std::stod(text));
  return values;
}

TEST(Documents, EveryMeshMasksAsOneRankDoes) {
  ScratchRun scratch("documents");
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    std::string one = fmt::format("one-{}", file);
    scratch.run(one, settings({"data.mask_documents=true"}), file);
    std::vector<double> expected = numbers(scratch.losses(one));
    scratch.run("plain", settings({}), file);
    std::vector<double> plain = numbers(scratch.losses("plain"));
    EXPECT_GT(std::abs(plain.back() - expected.back()), 1e-4) << "the mask changed nothing";
    for (const std::vector<std::string>& mesh : std::vector<std::vector<std::string>>{
             {"mesh.tp=2"},
             {"mesh.dp=2"},
             {"mesh.pp=2"},
             {"mesh.cp=2"},
             {"mesh.cp=2", "mesh.ring_order=zigzag"},
             {"mesh.cp=4", "train.recompute=full"},
             {"mesh.cp=2", "mesh.context=ulysses"},
             {"mesh.cp=2", "mesh.tp=2", "mesh.sequence_parallel=true"},
             {"mesh.pp=2", "pipeline.schedule=dualpipe", "pipeline.chunks=2", "batch.microbatch=1"}}) {
      std::string out = fmt::format("{}-{}", fmt::join(mesh, "-"), file);
      std::vector<std::string> on_mesh = mesh;
      on_mesh.push_back("data.mask_documents=true");
      scratch.run(out, settings(on_mesh), file);
      std::vector<double> losses = numbers(scratch.losses(out));
      ASSERT_EQ(losses.size(), expected.size());
      for (size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << out << " step " << i + 1;
    }
    std::filesystem::remove_all(scratch.root() / "plain");
  }
}

// Documents that begin behind the first block of queries (128) of a rank's piece, in every order of the ring.
TEST(Documents, OfPiecesLongerThanABlockOfQueries) {
  ScratchRun scratch("documents-long");
  auto losses = [&](const std::string& out, std::vector<std::string> all) {
    for (const char* own :
         {"data.mask_documents=true", "train.steps=2", "train.eval_every=0", "batch.sequences=1", "batch.microbatch=1",
          "batch.seq=1200", "model.max_seq=1200", "model.layers=1", "optimizer.eps=1e-6"})
      all.emplace_back(own);
    scratch.run(out, all);
    return numbers(scratch.losses(out));
  };
  std::vector<double> expected = losses("one", {});
  for (const char* order : {"auto", "zigzag", "striped"}) {
    std::vector<double> ring = losses(order, {"mesh.cp=2", fmt::format("mesh.ring_order={}", order)});
    ASSERT_EQ(ring.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(ring[i], expected[i], 1e-5 * expected[i]) << order << " step " << i + 1;
  }
}

// Attention by position: scores that fall with the distance, weights that are left out, windows.
TEST(Documents, StripedRingsCountPositionsOfTheWholeSequence) {
  ScratchRun scratch("documents-striped");
  for (const auto& [file, by_position] :
       std::vector<std::pair<const char*, std::string>>{{"tiny-gpt2.toml", "model.architecture=mpt"},
                                                        {"tiny-gpt2.toml", "model.attention_dropout=0.2"},
                                                        {"tiny-llama.toml", "model.window=20"}}) {
    auto losses = [&](const std::string& out, std::vector<std::string> all) {
      all.insert(all.end(), {"data.mask_documents=true", by_position});
      scratch.run(out, settings(all), file);
      return numbers(scratch.losses(out));
    };
    std::vector<double> expected = losses("one-" + by_position, {});
    std::vector<double> striped = losses("striped-" + by_position, {"mesh.cp=4", "mesh.ring_order=striped"});
    ASSERT_EQ(striped.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(striped[i], expected[i], 1e-5 * expected[i]) << by_position << " step " << i + 1;
  }
}

TEST(Documents, WhatIsNotThereIsRefused) {
  ScratchRun scratch("documents-refused");
  auto complaint = [&](std::initializer_list<std::string> more) -> std::string {
    try {
      scratch.run("refused", settings(more));
    } catch (const UserError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(complaint({"data.end_of_text=3"}).find("data.mask_documents = true"), std::string::npos);
  EXPECT_NE(complaint({"mesh.cp=2", "mesh.ring_order=striped", "train.precision=fp8-block"}).find("stripes take apart"),
            std::string::npos);
  EXPECT_NE(complaint({"mesh.cp=2", "mesh.ring_order=zigzag", "mesh.context=ulysses"}).find("an order of the ring"),
            std::string::npos);
  EXPECT_NE(complaint({"data.mask_documents=true", "data.end_of_text=100000"}).find("an id below"), std::string::npos);
}

}  // namespace
}  // namespace sextant
