#include "replay/f64_executor.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sextant {

namespace {

constexpr int64_t kWiden = sizeof(double) / sizeof(float);

// The Program that callers see: values in f64 appear as f32.
Program narrowed(Program program) {
  for (Value& value : program.values)
    if (value.dtype == DType::f64) value.dtype = DType::f32;
  return program;
}

class F64Bound final : public Bound {
 public:
  explicit F64Bound(std::unique_ptr<Bound> bound) : bound_(std::move(bound)), program_(narrowed(bound_->program())) {}

  const Program& program() const override { return program_; }
  int rank() const override { return bound_->rank(); }
  void run(std::span<const Action> unit, Trace* trace) override { bound_->run(unit, trace); }
  void settle() override { bound_->settle(); }
  void observe(OpObserver* observer) override { bound_->observe(observer); }
  bool is_observed_in_place() const override { return bound_->is_observed_in_place(); }

  void write(const Value& value, std::span<const std::byte> source, int64_t offset, int microbatch) override {
    const Value& real = bound_->program()[value.id];
    if (real.dtype != DType::f64) return bound_->write(real, source, offset, microbatch);
    std::vector<float> narrow(source.size() / sizeof(float));
    std::memcpy(narrow.data(), source.data(), source.size());
    std::vector<double> wide(narrow.begin(), narrow.end());
    bound_->write(real, std::as_bytes(std::span(wide)), offset * kWiden, microbatch);
  }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    const Value& real = bound_->program()[value.id];
    if (real.dtype != DType::f64) return bound_->read(real, destination, offset);
    std::vector<double> wide(destination.size() / sizeof(float));
    bound_->read(real, std::as_writable_bytes(std::span(wide)), offset * kWiden);
    std::vector<float> narrow;
    for (double x : wide) narrow.push_back(static_cast<float>(x));
    std::memcpy(destination.data(), narrow.data(), destination.size());
  }

  // The CPU has done everything when run returns.
  int64_t fetch(const Value& scalar) override {
    fetched_.resize(kFetchesUnderWay);
    fetched_[static_cast<size_t>(fetches_ % kFetchesUnderWay)] = read_value<float>(*this, scalar);
    return fetches_++;
  }
  float collect(int64_t ticket) override { return fetched_[static_cast<size_t>(ticket % kFetchesUnderWay)]; }

 private:
  std::unique_ptr<Bound> bound_;
  Program program_;
  std::vector<float> fetched_;
  int64_t fetches_ = 0;
};

class F64Executor final : public Executor {
 public:
  explicit F64Executor(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}

  Target target() const override {
    Target target = executor_->target();
    target.computes_in = {DType::f64};
    return target;
  }
  std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes, const FileSpace& file) override {
    return executor_->allocate(bytes, host_bytes, file);
  }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override {
    return std::make_unique<F64Bound>(executor_->bind(program, arena));
  }
  std::optional<Bytes> room() const override { return executor_->room(); }
  std::map<std::string, int64_t> bytes_sent() const override { return executor_->bytes_sent(); }

 private:
  std::unique_ptr<Executor> executor_;
};

}  // namespace

std::unique_ptr<Executor> make_f64_executor(std::unique_ptr<Executor> executor) {
  std::string device(executor->target().name);
  if (device != "cpu")
    throw UserError({.place = "--precision f64",
                     .got = fmt::format("the kernels of {} do not compute in f64", device),
                     .expected = "device=cpu"});
  return std::make_unique<F64Executor>(std::move(executor));
}

}  // namespace sextant
