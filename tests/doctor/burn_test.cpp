// A burn finds nothing where nothing is wrong, and finds a single flipped bit: once, always, on one rank or alone.
#include "doctor/burn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "comm/run_ranks.h"
#include "exec/cpu/cpu_executor.h"

namespace sextant {
namespace {

// Which read of which value comes back with a bit flipped.
struct Flip {
  std::string path;
  int from = 0, to = 1 << 30;  // reads of that value, counted from 0
  size_t byte = 0;
  std::byte mask{0x40};
};

class FlippingBound final : public Bound {
 public:
  FlippingBound(std::unique_ptr<Bound> inner, const Flip* flip) : inner_(std::move(inner)), flip_(flip) {}
  const Program& program() const override { return inner_->program(); }
  int rank() const override { return inner_->rank(); }
  void run(std::span<const Action> unit, Trace* trace) override { inner_->run(unit, trace); }
  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    inner_->write(value, source, offset, microbatch);
  }
  int64_t fetch(const Value& scalar) override { return inner_->fetch(scalar); }
  float collect(int64_t ticket) override { return inner_->collect(ticket); }
  void settle() override { inner_->settle(); }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    inner_->read(value, destination, offset);
    if (!flip_ || value.path != flip_->path) return;
    int at = reads_++;
    if (at >= flip_->from && at < flip_->to) destination[flip_->byte] ^= flip_->mask;
  }

 private:
  std::unique_ptr<Bound> inner_;
  const Flip* flip_;
  mutable int reads_ = 0;
};

class FlippingExecutor final : public Executor {
 public:
  FlippingExecutor(std::unique_ptr<Executor> inner, const Flip* flip) : inner_(std::move(inner)), flip_(flip) {}
  Target target() const override { return inner_->target(); }
  std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes, const FileSpace& file) override {
    return inner_->allocate(bytes, host_bytes, file);
  }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override {
    return std::make_unique<FlippingBound>(inner_->bind(program, arena), flip_);
  }
  std::map<std::string, int64_t> bytes_sent() const override { return inner_->bytes_sent(); }

 private:
  std::unique_ptr<Executor> inner_;
  const Flip* flip_;
};

// Rounds are counted, not timed: three of them.
std::vector<Finding> burn_three(Executor& executor, const RankContext& context) {
  int64_t done = 0;
  return burn(executor, context,
              {.seconds = 100,
               .seed = 5,
               .stop = [&] { return done >= 3; },
               .hosts = {"a", "c", "d"},
               .progress = [&](int64_t rounds, double) { done = rounds; }});
}

std::vector<Finding> burn_alone(const Flip* flip) {
  FlippingExecutor executor(make_cpu_executor(1), flip);
  return burn_three(executor, {});
}

std::vector<Finding> burn_together(int ranks, int bad_rank, const Flip& flip) {
  std::vector<Finding> findings;
  ThreadHub hub(ranks, std::chrono::seconds(30));
  for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
         RankContext context{transport.rank(), &transport};
         FlippingExecutor executor(make_cpu_executor(1, context), context.rank == bad_rank ? &flip : nullptr);
         std::vector<Finding> own = burn_three(executor, context);
         if (context.rank == 0) findings = own;
       }))
    EXPECT_EQ(end.error, "");
  return findings;
}

TEST(Burn, FindsNothingWhereNothingIsWrong) {
  std::vector<Finding> alone = burn_alone(nullptr), together = burn_together(3, -1, {});
  for (const auto& findings : {alone, together}) {
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].health, Health::ok);
    EXPECT_NE(findings[0].found.find("none in 3 rounds"), std::string::npos) << findings[0].found;
  }
}

TEST(Burn, FindsABitThatFlipsOnce) {
  for (const char* path : {"y", "dx", "dw", "dqkv"}) {
    Flip flip{.path = path, .from = 3, .to = 4, .byte = 1001, .mask = std::byte{1}};
    std::vector<Finding> findings = burn_alone(&flip);
    ASSERT_GE(findings.size(), 1u) << path;
    EXPECT_EQ(findings[0].health, Health::failure) << path;
    EXPECT_NE(findings[0].found.find("first in round 1"), std::string::npos) << findings[0].found;
  }
}

// Always the same wrong answer: repeats agree with each other, arithmetic does not.
TEST(Burn, FindsAWeightGradientThatIsAlwaysWrong) {
  Flip flip{.path = "dw", .byte = 4003};
  std::vector<Finding> findings = burn_alone(&flip);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].name, "GEMMs");
  EXPECT_NE(findings[0].found.find("wrong results in 3"), std::string::npos) << findings[0].found;
}

TEST(Burn, NamesTheRankThatIsAlwaysWrong) {
  for (const char* path : {"dx", "dqkv", "sum", "gathered"}) {
    Flip flip{.path = path, .byte = 4003};  // the sign and exponent of an element
    std::vector<Finding> findings = burn_together(3, 1, flip);
    ASSERT_GE(findings.size(), 1u) << path;
    for (const Finding& f : findings) {
      EXPECT_EQ(f.health, Health::failure);
      EXPECT_EQ(f.where, "rank 1 (c)") << path << ": " << f.found;
    }
  }
}

}  // namespace
}  // namespace sextant
