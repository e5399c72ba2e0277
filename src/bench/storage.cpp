#include "bench/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "base/units.h"
#include "ckpt/safetensors_writer.h"
#include "ckpt/staged_directory.h"
#include "data/token_file.h"
#include "data/token_writer.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr size_t kBlock = size_t{1} << 23;  // bytes of one write
constexpr int64_t kSmallBytes = 4096;
constexpr double kReadSeconds = 1;
constexpr int kMostReads = 20000;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<float> random_block(int rank) {
  std::vector<float> block(kBlock / sizeof(float));
  Random random(static_cast<uint64_t>(rank), "bench.storage");
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<float>(random.bits(i) >> 40);
  return block;
}

// One measurement of several things in a directory that all ranks see.
class StorageBench {
 public:
  StorageBench(CommWorld& world, const StorageRequest& request, const Watch& watch)
      : world_(world), request_(request), watch_(watch), block_(random_block(world.rank())) {
    std::string own = (request.directory / fmt::format("sextant-bench-{}", ::getpid())).string();
    place_ = world.agree(own);
    if (world.rank() == 0) fs::create_directories(place_);
    world.meet();
  }
  ~StorageBench() {
    std::error_code ignored;
    if (world_.rank() == 0) fs::remove_all(place_, ignored);
  }
  StorageBench(const StorageBench&) = delete;
  StorageBench& operator=(const StorageBench&) = delete;

  BenchReport run() {
    checkpoint();
    if (go_on()) tokens();
    if (go_on()) small_files();
    if (world_.rank() == 0 && cached_ > 0.05)
      report_.findings.push_back(
          fmt::format("the system kept up to {:.0f} % of the files in memory although asked to forget them: reads are "
                      "faster here than from cold storage",
                      100 * cached_));
    return std::move(report_);
  }

 private:
  bool go_on() { return !(report_.interrupted = report_.interrupted || !world_.agree(!watch_.stop())); }
  void say(const std::string& line) const {
    if (world_.rank() == 0) watch_.say(line);
  }
  std::string name(int rank) const { return fmt::format("rank.{}", rank); }

  SafetensorsLayout layout() const {
    int64_t rows = ceil_div(request_.checkpoint_bytes, static_cast<int64_t>(kBlock) * world_.size());
    std::vector<TensorSpec> tensors;
    for (int rank = 0; rank < world_.size(); ++rank)
      tensors.push_back({name(rank), FileDType::f32, {rows, static_cast<int64_t>(kBlock / 4)}});
    return plan_safetensors(tensors);
  }

  // Until the last rank is through.
  template <class Body>
  double timed(const Body& body) {
    world_.meet();
    auto start = Clock::now();
    body();
    return world_.largest(seconds_since(start));
  }

  void checkpoint() {
    SafetensorsLayout plan = layout();
    double bytes = static_cast<double>(plan.file_bytes());
    BenchResult write = result("checkpoint write", bytes), read = result("checkpoint read", bytes);
    for (int i = 0; i < request_.repeats && (i == 0 || go_on()); ++i) {
      doing_ = fmt::format("checkpoint {} of {}", i + 1, request_.repeats);
      double seconds = timed([&] { write_checkpoint(plan); });
      if (report_.interrupted) break;
      write.samples.push_back(seconds);
      fs::path file = place_ / "checkpoint" / "model.safetensors";
      if (world_.rank() == 0) cached_ = std::max(cached_, drop_cached(file));
      int64_t wrong = 0;
      seconds = timed([&] { wrong = read_checkpoint(file); });
      if (report_.interrupted) break;
      read.samples.push_back(seconds);
      if (double all = world_.sum(static_cast<double>(wrong)); all > 0) {
        read.error = 2;
        report_.findings.push_back(
            fmt::format("the checkpoint came back WRONG: {:.0f} blocks differ from what was written", all));
      }
      world_.meet();
    }
    for (BenchResult* each : {&write, &read})
      if (!each->samples.empty()) report_.results.push_back(*each);
    if (write.samples.empty()) return;
    SaveLoss loss = save_loss(write.seconds().median, request_.interval_s);
    report_.findings.push_back(fmt::format(
        "a checkpoint of {} every {:.0f} minutes costs a run that waits for it {:.1f} minutes a day ({:.2f} %); saved "
        "in the background, only what the copy takes",
        human(Bytes{static_cast<int64_t>(bytes)}), request_.interval_s / 60, loss.minutes_per_day, 100 * loss.share));
  }

  // Before every so many blocks of a checkpoint: how far it is, and whether to go on. Not before every one, since ranks
  // meet here.
  bool continues_at(int64_t row, int64_t rows, const char* what) {
    constexpr int64_t kRowsBetween = 64;
    if (row % kRowsBetween != 0) return true;
    double block = static_cast<double>(kBlock) * world_.size() / 1e9;
    say(fmt::format("{} {}: {:.1f} of {:.1f} GB", doing_, what, static_cast<double>(row) * block,
                    static_cast<double>(rows) * block));
    return row == 0 || go_on();
  }

  // As training does: staged by the first rank, each rank's part written by itself, flushed, and then put in place.
  void write_checkpoint(const SafetensorsLayout& plan) {
    std::unique_ptr<StagedDirectory> staged;
    if (world_.rank() == 0) staged = std::make_unique<StagedDirectory>(place_ / "checkpoint", Existing::replace);
    fs::path directory = world_.agree(staged ? staged->path().string() : "");
    {
      SafetensorsWriter writer(directory / "model.safetensors", plan, Share::part);
      int64_t rows = plan.tensors.front().shape[0];
      for (int64_t row = 0; row < rows; ++row) {
        if (!continues_at(row, rows, "written")) return;  // what was staged goes with its directory
        block_[0] = static_cast<float>(row);
        writer.write_rows(name(world_.rank()), {row, row + 1}, std::as_bytes(std::span(block_)));
      }
      writer.finish();
    }
    world_.meet();
    if (staged) staged->commit();
  }

  int64_t read_checkpoint(const fs::path& path) {
    SafetensorsFile file(path);
    std::span<const std::byte> bytes = file.tensor(name(world_.rank())).bytes;
    int64_t wrong = 0, rows = static_cast<int64_t>(bytes.size() / kBlock);
    for (int64_t row = 0; row < rows; ++row) {
      if (!continues_at(row, rows, "read")) break;
      block_[0] = static_cast<float>(row);
      wrong += std::memcmp(bytes.data() + static_cast<size_t>(row) * kBlock, std::as_bytes(std::span(block_)).data(),
                           kBlock) != 0;
    }
    return wrong;
  }

  void tokens() {
    say("tokens");
    fs::path path = place_ / "tokens.bin";
    if (world_.rank() == 0) write_tokens(path);
    world_.meet();
    if (world_.rank() == 0) cached_ = std::max(cached_, drop_cached(path));
    world_.meet();
    TokenFile file = open_token_file(path);
    Random random(static_cast<uint64_t>(world_.rank()), "bench.storage.tokens");
    std::vector<int32_t> ids(static_cast<size_t>(request_.sequence + 1));
    BenchResult read = result("tokens at random", static_cast<double>(ids.size() * 2));
    auto start = Clock::now();
    for (int i = 0; i < kMostReads && seconds_since(start) < kReadSeconds; ++i) {
      auto begin = Clock::now();
      file.read(static_cast<int64_t>(random.below(static_cast<uint64_t>(i),
                                                  static_cast<uint64_t>(file.token_count() - request_.sequence))),
                ids);
      read.samples.push_back(seconds_since(begin));
    }
    world_.meet();
    report_.results.push_back(std::move(read));
  }

  void write_tokens(const fs::path& path) const {
    TokenWriter writer(path, {.kind = TokenKind::flat, .type = TokenType::u16});
    std::vector<int32_t> ids(size_t{1} << 20);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 40503 % 50000);
    int64_t needed = std::max(request_.token_bytes / 2, 2 * (request_.sequence + 1));
    while (writer.token_count() < needed) writer.append_document(ids);
    writer.finish();
  }

  void small_files() {
    say("small files");
    fs::path own = place_ / fmt::format("small-{}", world_.rank());
    fs::create_directories(own);
    std::string content(kSmallBytes, 'x');
    BenchResult made = result("small file made", kSmallBytes), opened = result("small file opened", kSmallBytes);
    auto path = [&](int64_t i) { return own / fmt::format("{}.txt", i); };
    for (int64_t i = 0; i < request_.small_files; ++i) {
      auto start = Clock::now();
      std::ofstream(path(i), std::ios::binary) << content;
      made.samples.push_back(seconds_since(start));
    }
    flush_to_disk(own);
    world_.meet();
    Random random(static_cast<uint64_t>(world_.rank()), "bench.storage.small");
    for (int64_t i = 0; i < request_.small_files; ++i) {
      fs::path chosen = path(
          static_cast<int64_t>(random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(request_.small_files))));
      auto start = Clock::now();
      std::string text = read_file(chosen);
      opened.samples.push_back(seconds_since(start));
      if (text.size() != content.size())
        throw RunError(chosen.string(), fmt::format("{} bytes where {} were written", text.size(), content.size()));
    }
    world_.meet();
    report_.results.push_back(std::move(made));
    report_.results.push_back(std::move(opened));
  }

  BenchResult result(const std::string& what, double bytes) const {
    return {.kind = "storage",
            .name = what,
            .shape = fmt::format("{:.0f} bytes, {} rank{}", bytes, world_.size(), world_.size() == 1 ? "" : "s"),
            .dtype = "",
            .size = {bytes, static_cast<double>(world_.size())},
            .samples = {},
            .bytes = bytes};
  }

  CommWorld& world_;
  const StorageRequest& request_;
  const Watch& watch_;
  std::vector<float> block_;
  fs::path place_;
  BenchReport report_;
  std::string doing_;  // for the line that shows the progress
  double cached_ = 0;  // the largest share that stayed in memory
};

}  // namespace

SaveLoss save_loss(double save_s, double interval_s) {
  constexpr double kDay = 86400;
  double saves = kDay / interval_s;
  return {saves, saves * save_s / 60, save_s / interval_s};
}

double drop_cached(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw_disk_error(path, "opening", errno);
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || facts.st_size == 0) return 0;
  size_t size = static_cast<size_t>(facts.st_size), page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return 1;
  std::vector<unsigned char> resident((size + page - 1) / page);
  bool known = ::mincore(data, size, resident.data()) == 0;
  ::munmap(data, size);
  if (!known) return 1;
  size_t held = 0;
  for (unsigned char flags : resident) held += flags & 1;
  return static_cast<double>(held) / static_cast<double>(resident.size());
}

BenchReport bench_storage(CommWorld& world, const StorageRequest& request, const Watch& watch) {
  return StorageBench(world, request, watch).run();
}

}  // namespace sextant
