// Messages between threads: order, sizes, time-outs, aborts, what unwinding leaves behind, and what waiting costs.
#include "comm/thread_transport.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <thread>

#include "comm/collective_checks.h"
#include "comm/run_ranks.h"

namespace sextant {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLong{20'000};

std::span<std::byte> bytes_of(int& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool says(const RankEnd& end, const std::string& text) {
  return end.error.find(text) != std::string::npos;
}

TEST(ThreadTransport, MessagesOfOneTagKeepTheirOrderAndTagsAreApart) {
  ThreadHub hub(2, kLong);
  auto ends = run_ranks(hub, 2, [](Transport& transport) {
    constexpr int kCount = 300;  // more than the transport has ready
    std::vector<int> values(2 * kCount);
    std::vector<Ticket> tickets;
    for (int i = 0; i < kCount; ++i) {
      auto first = static_cast<size_t>(i), second = first + kCount;
      if (transport.rank() == 0) {
        values[first] = i, values[second] = -i;
        tickets.push_back(transport.send(1, 5, bytes_of(values[first])));
        tickets.push_back(transport.send(1, 6, bytes_of(values[second])));
      } else {
        tickets.push_back(transport.receive(0, 6, bytes_of(values[second])));
        tickets.push_back(transport.receive(0, 5, bytes_of(values[first])));
      }
    }
    for (auto ticket = tickets.rbegin(); ticket != tickets.rend(); ++ticket) transport.wait(*ticket);
    for (int i = 0; i < kCount; ++i) {
      checks::require(values[static_cast<size_t>(i)] == i, "message {} of tag 5 is {}", i,
                      values[static_cast<size_t>(i)]);
      checks::require(values[static_cast<size_t>(i) + kCount] == -i, "message {} of tag 6 is wrong", i);
    }
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.error, "");
}

TEST(ThreadTransport, ARankMaySendToItself) {
  ThreadHub hub(1, kLong);
  Transport& transport = hub.transport(0);
  int out = 42, in = 0;
  Ticket send = transport.send(0, 0, bytes_of(out)), receive = transport.receive(0, 0, bytes_of(in));
  transport.wait(send);
  transport.wait(receive);
  EXPECT_EQ(in, 42);
  EXPECT_THROW(transport.wait(receive), Bug);
}

TEST(ThreadTransport, ARankThatNeverComesEndsTheRunForAll) {
  ThreadHub hub(3, milliseconds(400));
  Clock::time_point start = Clock::now();
  std::atomic<bool> late_throws{false};
  auto ends = run_ranks(hub, 3, [&](Transport& transport) {
    int value = 0;
    if (transport.rank() == 1) {  // comes only when the others have given up
      std::this_thread::sleep_for(milliseconds(1000));
      try {
        transport.send(0, 7, bytes_of(value));
      } catch (const RunEnded&) {
        late_throws = true;
        throw;
      }
    }
    if (transport.rank() == 2)
      std::this_thread::sleep_for(milliseconds(300));  // so that rank 0 is the first to give up
    transport.wait(transport.receive(transport.rank() == 0 ? 1 : 0, 7, bytes_of(value)));
  });
  EXPECT_LT(seconds_since(start), 10.0);
  EXPECT_TRUE(late_throws);
  for (const RankEnd& end : ends)
    EXPECT_TRUE(says(end, "rank 0 waited 0.4 s for a message from rank 1 (tag 7, 4 bytes)")) << end.error;
  EXPECT_FALSE(ends[0].is_echo);
  EXPECT_TRUE(ends[1].is_echo && ends[2].is_echo);
  EXPECT_TRUE(ends[0].is_run_error);
}

TEST(ThreadTransport, ASendNobodyTakesTimesOut) {
  ThreadHub hub(2, milliseconds(50));
  int value = 0;
  Ticket ticket = hub.transport(0).send(1, 3, bytes_of(value));
  try {
    hub.transport(0).wait(ticket);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 waited 0.05 s for rank 1 to take a message (tag 3, 4 bytes)"),
              std::string::npos)
        << error.what();
  }
}

TEST(ThreadTransport, ARankThatThrowsWakesAllAndTheFirstReasonCounts) {
  ThreadHub hub(8, kLong);
  Clock::time_point start = Clock::now();
  auto ends = run_ranks(hub, 8, [](Transport& transport) {
    int value = 0;
    if (transport.rank() == 5) {
      std::this_thread::sleep_for(milliseconds(20));
      throw RunError("layers.3", "the disk is full");
    }
    transport.wait(transport.receive(5, 0, bytes_of(value)));
  });
  EXPECT_LT(seconds_since(start), 10.0);
  for (const RankEnd& end : ends) EXPECT_TRUE(says(end, "layers.3: the disk is full")) << end.error;
  Transport& transport = hub.transport(0);
  transport.abort("another reason");
  int value = 0;
  EXPECT_THROW(transport.send(1, 0, bytes_of(value)), RunEnded);
  EXPECT_THROW(transport.receive(1, 0, bytes_of(value)), RunEnded);
  try {
    transport.wait({});
    FAIL();
  } catch (const RunEnded& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0: the run was ended: layers.3"), std::string::npos) << error.what();
  }
}

TEST(ThreadTransport, SizesThatDifferAreABugForAll) {
  ThreadHub hub(3, kLong);
  auto ends = run_ranks(hub, 3, [](Transport& transport) {
    std::vector<int> values(8);
    std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
    if (transport.rank() == 0) transport.wait(transport.send(1, 9, bytes.first(16)));
    if (transport.rank() == 1) transport.wait(transport.receive(0, 9, bytes.first(12)));
    if (transport.rank() == 2) transport.wait(transport.receive(0, 9, bytes));
  });
  for (const RankEnd& end : ends)
    EXPECT_TRUE(says(end, "rank 0 sends 16 bytes to rank 1 on tag 9, which expects 12")) << end.error;
  EXPECT_NE(ends[0].is_run_error, ends[1].is_run_error) << "who comes second finds the bug";
}

TEST(ThreadTransport, AnUnwindingRankTakesItsBytesWithIt) {
  for (int round = 0; round < 60; ++round) {
    ThreadHub hub(4, kLong);
    auto ends = run_ranks(hub, 4, [&](Transport& transport) {
      constexpr size_t kBytes = 1 << 16;
      auto bytes = std::make_unique<std::vector<std::byte>>(6 * kBytes);  // freed by unwinding
      AbortOnThrow guard(transport);
      std::span<std::byte> at = *bytes;
      std::vector<Ticket> tickets;
      size_t place = 0;
      for (int other = 0; other < 4; ++other) {
        if (other == transport.rank()) continue;
        tickets.push_back(transport.receive(other, 0, at.subspan(kBytes * place++, kBytes)));
        if (transport.rank() == 2 && place == 2) {
          std::this_thread::sleep_for(std::chrono::microseconds(4 * round));
          throw std::runtime_error("rank 2 is unwell");
        }
      }
      for (int other = 0; other < 4; ++other)
        if (other != transport.rank())
          tickets.push_back(transport.send(other, 0, at.subspan(kBytes * place++, kBytes)));
      for (Ticket ticket : tickets) transport.wait(ticket);
    });
    EXPECT_TRUE(says(ends[2], "unwell"));
    for (int rank : {0, 1, 3})
      EXPECT_TRUE(ends[static_cast<size_t>(rank)].is_echo) << ends[static_cast<size_t>(rank)].error;
  }
}

TEST(ThreadTransport, BytesThatUnwindingFreedAreNotWrittenTo) {
  ThreadHub hub(2, kLong);
  std::atomic<bool> freed{false}, ended{false};
  run_ranks(hub, 2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      try {
        auto bytes = std::make_unique<std::vector<std::byte>>(1000);
        AbortOnThrow guard(transport);
        transport.receive(1, 0, *bytes);
        throw std::runtime_error("unwell");
      } catch (const std::runtime_error&) {
        freed = true;
        while (!ended) std::this_thread::yield();  // nobody but the guard has told rank 1
      }
    } else {
      while (!freed) std::this_thread::yield();
      std::vector<std::byte> bytes(1000);
      try {
        transport.send(0, 0, bytes);
        ADD_FAILURE() << "a message to a rank that is gone";
      } catch (const RunEnded&) {
      }
      ended = true;
    }
  });
}

TEST(ThreadTransport, AfterAbortNothingIsWrittenAnyMore) {
  constexpr size_t kBytes = 48 << 20;
  constexpr std::byte kMark{0x55};
  ThreadHub hub(2, kLong);
  std::atomic<bool> posted{false}, sending{false}, marked{false};
  std::vector<std::byte> target(kBytes), source(kBytes);
  run_ranks(hub, 2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      transport.receive(1, 0, target);
      posted = true;
      while (!sending) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(2));  // in the middle of the copy
      transport.abort("enough");
      target.back() = kMark;
      marked = true;
    } else {
      while (!posted) std::this_thread::yield();
      sending = true;
      transport.send(0, 0, source);
      while (!marked) std::this_thread::yield();
    }
  });
  EXPECT_EQ(target.back(), kMark);
}

TEST(ThreadTransport, WaitingCostsNoTime) {
  auto cpu_seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  ThreadHub hub(8, kLong);
  double before = cpu_seconds();
  auto ends = run_ranks(hub, 8, [](Transport& transport) {
    Channel channel{transport};
    if (transport.rank() == 3) std::this_thread::sleep_for(milliseconds(1000));
    barrier(channel, group_of_ranks({0, 1, 2, 3, 4, 5, 6, 7}, transport.rank()));
  });
  EXPECT_LT(cpu_seconds() - before, 0.2);
  for (const RankEnd& end : ends) EXPECT_EQ(end.error, "");
}

class Delay : public testing::Test {
 protected:
  void SetUp() override { setenv("SEXTANT_MESSAGE_DELAY_MS", "100", 1); }
  void TearDown() override { unsetenv("SEXTANT_MESSAGE_DELAY_MS"); }
};

TEST_F(Delay, MessagesTravelSideBySideAndTheSenderDoesNotWait) {
  ThreadHub hub(2, kLong);
  auto ends = run_ranks(hub, 2, [](Transport& transport) {
    Clock::time_point start = Clock::now();
    std::array<int, 2> values{};
    std::array<Ticket, 2> tickets;
    for (size_t i : {0u, 1u})
      tickets[i] = transport.rank() == 0 ? transport.send(1, 0, bytes_of(values[i]))
                                         : transport.receive(0, 0, bytes_of(values[i]));
    for (Ticket ticket : tickets) transport.wait(ticket);
    double took = seconds_since(start);
    if (transport.rank() == 0) checks::require(took < 0.08, "the sender took {} s", took);
    if (transport.rank() == 1) checks::require(took > 0.08 && took < 0.19, "the receiver took {} s", took);
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.error, "");
}

TEST_F(Delay, MustBeANumber) {
  for (const char* bad : {"-1", "4x", "fast", "99999999999"}) {
    setenv("SEXTANT_MESSAGE_DELAY_MS", bad, 1);
    EXPECT_THROW(ThreadHub(1, kLong), UserError) << bad;
  }
}

// Rank 1 needs less time than the time-out, but in between the process stands still for longer than that.
TEST(ThreadTransport, TimeInWhichTheProcessIsStoppedDoesNotCount) {
  pid_t child = ::fork();
  if (child == 0) {
    ThreadHub hub(2, std::chrono::seconds(2));
    std::array<std::byte, 4> sent{}, received{};
    std::thread other([&] {
      for (int i = 0; i < 40; ++i) std::this_thread::sleep_for(milliseconds(10));
      hub.transport(1).wait(hub.transport(1).send(0, 5, sent));
    });
    int code = 0;
    try {
      hub.transport(0).wait(hub.transport(0).receive(1, 5, received));
      other.join();
    } catch (const RunError&) {
      code = 1;
    }
    ::_exit(code);
  }
  std::this_thread::sleep_for(milliseconds(100));
  ::kill(child, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(2300));
  ::kill(child, SIGCONT);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Another thread of the rank writes a checkpoint meanwhile: whom that waits for is not whom the rank waits for.
TEST(ThreadTransport, WaitsInTheBackgroundAreNotTheRanks) {
  ThreadHub hub(2, kLong);
  Transport &here = hub.transport(0), &there = hub.transport(1);
  int first = 0, second = 0, sent = 7;
  std::thread rank([&] { here.wait(here.receive(1, kHostTag, bytes_of(first))); });
  while (here.rank_status().seen().waiting_for != 1) std::this_thread::yield();
  std::thread writer([&] { here.wait(here.receive(1, kSaveTag, bytes_of(second))); });
  std::this_thread::sleep_for(milliseconds(20));
  there.wait(there.send(0, kSaveTag, bytes_of(sent)));
  writer.join();
  EXPECT_EQ(here.rank_status().seen().waiting_for, 1);
  there.wait(there.send(0, kHostTag, bytes_of(sent)));
  rank.join();
  EXPECT_EQ(here.rank_status().seen().waiting_for, -1);
  EXPECT_EQ(first + second, 14);
}

TEST(ThreadTransport, TheTimeoutCanBeChanged) {
  ThreadHub hub(2, kLong);
  hub.transport(0).set_timeout(milliseconds(30));
  EXPECT_EQ(hub.transport(0).timeout_for(kHostTag), milliseconds(30));
  EXPECT_EQ(hub.transport(0).timeout_for(kSaveTag), kLong);  // disks are waited for
  EXPECT_EQ(hub.transport(1).timeout_for(kHostTag), kLong);
  std::array<std::byte, 4> received{};
  try {
    hub.transport(0).wait(hub.transport(0).receive(1, kHostTag, received));
    FAIL() << "nothing was sent";
  } catch (const RunError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::rank_lost);
  }
  try {
    hub.transport(1).send(0, kHostTag, received);
    FAIL() << "the run has ended";
  } catch (const RunEnded& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::rank_lost);  // that of the cause
  }
}

}  // namespace
}  // namespace sextant
