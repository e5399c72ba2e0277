// An executor that hands everything on to another, for tests that look at a part of what passes: they override that
// part.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "exec/executor.h"

namespace sextant {

class ForwardingBound : public Bound {
 public:
  explicit ForwardingBound(std::unique_ptr<Bound> bound) : bound_(std::move(bound)) {}

  const Program& program() const override { return bound_->program(); }
  int rank() const override { return bound_->rank(); }
  void run(std::span<const Action> unit, Trace* trace) override { bound_->run(unit, trace); }
  void write(const Value& value, std::span<const std::byte> from, int64_t offset, int microbatch) override {
    bound_->write(value, from, offset, microbatch);
  }
  void read(const Value& value, std::span<std::byte> to, int64_t offset) const override {
    bound_->read(value, to, offset);
  }
  int64_t fetch(const Value& scalar) override { return bound_->fetch(scalar); }
  float collect(int64_t ticket) override { return bound_->collect(ticket); }
  void settle() override { bound_->settle(); }
  void record_checksums() override { bound_->record_checksums(); }
  bool has_checksums() const override { return bound_->has_checksums(); }
  void verify_checksums() const override { bound_->verify_checksums(); }

 private:
  std::unique_ptr<Bound> bound_;
};

class ForwardingExecutor final : public Executor {
 public:
  using Wrap = std::function<std::unique_ptr<Bound>(std::unique_ptr<Bound>)>;

  ForwardingExecutor(std::unique_ptr<Executor> executor, Wrap wrap)
      : executor_(std::move(executor)), wrap_(std::move(wrap)) {}

  Target target() const override { return executor_->target(); }
  std::unique_ptr<Arena> allocate(int64_t bytes, int64_t host_bytes, const FileSpace& file) override {
    return executor_->allocate(bytes, host_bytes, file);
  }
  std::unique_ptr<Bound> bind(const Program& program, Arena& arena) override {
    return wrap_(executor_->bind(program, arena));
  }
  std::map<std::string, int64_t> bytes_sent() const override { return executor_->bytes_sent(); }

 private:
  std::unique_ptr<Executor> executor_;
  Wrap wrap_;
};

}  // namespace sextant
