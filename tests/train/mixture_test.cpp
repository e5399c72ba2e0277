// data.weights in whole datasets: text and token files give exactly their shares, at every prefix of the run.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "data/token_writer.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "train/data/dataset.h"

namespace sextant {
namespace {

// Files of very different sizes: their sizes must not matter.
void write_mixture_files(const std::filesystem::path& folder) {
  int sizes[] = {400, 60, 150};
  for (int i = 0; i < 3; ++i) {
    std::ofstream text(folder / fmt::format("{}.txt", i));
    for (int d = 0; d < sizes[i]; ++d) text << "document " << d << " of source " << i << " <|endoftext|>\n";
    TokenWriter writer(folder / fmt::format("{}.u16", i), {.type = TokenType::u16, .end_of_text = 60});
    for (int d = 0; d < sizes[i]; ++d) writer.append_document(std::vector<int32_t>(7, i));
    writer.finish();
  }
}

TEST(Mixture, SourcesGiveTheirSharesOfEveryPrefix) {
  ScratchRun scratch("mixture");
  write_mixture_files(scratch.root());
  for (const char* kind : {"txt", "u16"})
    for (const std::vector<double>& weights :
         std::vector<std::vector<double>>{{0.5, 0.3, 0.2}, {1, 1, 1}, {1, 20, 4}}) {
      std::string files;
      for (int i = 0; i < 3; ++i)
        files += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", (scratch.root() / fmt::format("{}.{}", i, kind)).string());
      RunConfig run = scratch.config(
          "tiny-llama.toml",
          {fmt::format("data.train=[{}]", files), fmt::format("data.weights=[{}]", fmt::join(weights, ", ")),
           kind == std::string_view("txt") ? "data.tokenizer_vocab=300" : "model.vocab=64", "batch.seq=16",
           "data.validation_fraction=0.1"});
      ThreadTeam team(1);
      Dataset data = open_dataset(run, resolve_spec(run), team, [](std::string_view) {});
      ASSERT_EQ(data.train.source_count(), 3);
      double sum = weights[0] + weights[1] + weights[2];
      for (const BatchSampler* sampler : {&data.train, &*data.validation}) {
        std::vector<int64_t> taken(3, 0);
        std::vector<int32_t> tokens(16), targets(16);
        for (int64_t k = 0; k < 3000; ++k) {
          BatchSampler::Draw draw = sampler->draw(k);
          ++taken[static_cast<size_t>(draw.source)];
          for (size_t i = 0; i < 3; ++i)
            ASSERT_LT(std::abs(static_cast<double>(taken[i]) - weights[i] / sum * static_cast<double>(k + 1)), 1)
                << kind << " source " << i << " after " << k + 1;
          if (k >= 100) continue;
          // The tokens themselves say where they are from.
          sampler->fill(k, 1, tokens, targets);
          if (data.tokenizer) {
            std::vector<uint32_t> ids(tokens.begin(), tokens.end());
            std::string decoded = data.tokenizer->decode(ids, Specials::skip);
            size_t at = decoded.find("source ");
            if (at == std::string::npos || at + 7 >= decoded.size()) continue;
            EXPECT_EQ(decoded[at + 7], '0' + draw.source) << decoded;
          } else {
            for (int32_t id : tokens) EXPECT_TRUE(id == draw.source || id == 60) << id;
          }
        }
      }
    }
}

TEST(Mixture, OneTextIsSharedWithoutWeights) {
  ScratchRun scratch("unmixed");
  write_mixture_files(scratch.root());
  RunConfig run = scratch.config("tiny-llama.toml",
                                 {fmt::format("data.train=[\"{0}/0.txt\", \"{0}/1.txt\"]", scratch.root().string()),
                                  "data.tokenizer_vocab=300", "batch.seq=16"});
  ThreadTeam team(1);
  EXPECT_EQ(open_dataset(run, resolve_spec(run), team, [](std::string_view) {}).train.source_count(), 1);
}

}  // namespace
}  // namespace sextant
