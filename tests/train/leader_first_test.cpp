// The leader may work longer than any time-out; when it fails the others hear of it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/leader_first.h"
#include "comm/ranks.h"
#include "comm/tags.h"

namespace sextant {
namespace {

using std::chrono::milliseconds;

TEST(LeaderFirst, OthersWaitAsLongAsItLives) {
  std::atomic<int> done{0}, early{0};
  run_ranks({}, {.ranks = 3, .timeout = milliseconds(150)}, [&](const RankContext& context) {
    HostGroup group(*context.transport, kHostTag);
    leader_first(group, milliseconds(30), [&] {
      if (group.leads()) std::this_thread::sleep_for(milliseconds(500));
      early += !group.leads() && done == 0;
      ++done;
    });
  });
  EXPECT_EQ(done, 3);
  EXPECT_EQ(early, 0);
}

TEST(LeaderFirst, ItsErrorIsTheOneThatComesOut) {
  std::atomic<int> followers{0};
  try {
    run_ranks({}, {.ranks = 3, .timeout = milliseconds(5000)}, [&](const RankContext& context) {
      HostGroup group(*context.transport, kHostTag);
      leader_first(group, milliseconds(30), [&] {
        if (group.leads()) throw UserError(Complaint{.place = "data.txt", .got = "is no text"});
        ++followers;
      });
    });
    FAIL() << "nobody noticed";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "data.txt: is no text");
  }
  EXPECT_EQ(followers, 0);
}

// The first real cause, the place where it happened and where the others were: not an echo.
TEST(Ranks, TellTheCause) {
  try {
    run_ranks({}, {.ranks = 4, .timeout = milliseconds(5000)}, [&](const RankContext& context) {
      HostGroup group(*context.transport, kHostTag);
      context.transport->rank_status().begin_step(7);
      if (context.rank == 2) throw RunError("model.safetensors", "the disk is full");
      group.barrier();
    });
    FAIL() << "nobody noticed";
  } catch (const RunError& error) {
    std::string text = error.what();
    EXPECT_TRUE(text.starts_with("rank 2 in step 7: model.safetensors: the disk is full")) << text;
    EXPECT_EQ(text.find("the run was ended"), std::string::npos) << text;
  }
}

// Rank 0 waits for 1, which waits for 2, which does nothing: the chain leads to 2.
TEST(Ranks, ATimeoutNamesTheOneWhoHoldsAllUp) {
  try {
    run_ranks({}, {.ranks = 3, .timeout = milliseconds(800)}, [&](const RankContext& context) {
      Transport& transport = *context.transport;
      transport.rank_status().begin_step(7);
      transport.rank_status().begin_action('F', 0, 3);
      transport.rank_status().arrive(
          transport.rank_status().keep(fmt::format("layers.{} (all_reduce over tp)", context.rank)));
      std::byte byte{};
      std::this_thread::sleep_for(milliseconds(context.rank * 200));
      if (context.rank < 2) transport.wait(transport.receive(context.rank + 1, 5, std::span(&byte, 1)));
      std::this_thread::sleep_for(milliseconds(800));
    });
    FAIL() << "nobody noticed";
  } catch (const RunError& error) {
    std::string text = error.what();
    EXPECT_TRUE(
        text.starts_with("rank 0 waited 0.8 s in step 7, F 0 3, at layers.0 (all_reduce over tp) for a message from "
                         "rank 1 (tag 5, 1 bytes) that did not come; rank 1 was last seen in step 7, F 0 3, at "
                         "layers.1 (all_reduce over tp), waiting for rank 2; rank 2 was last seen in step 7, F 0 3, "
                         "at layers.2 (all_reduce over tp)"))
        << text;
  }
}

}  // namespace
}  // namespace sextant
