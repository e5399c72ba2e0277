// NVIDIA's management library, by its functions' names: its header comes with the CUDA toolkit, which a machine need
// not have. Types and numbers are those of its stable binary interface.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace sextant {

class Nvml {
 public:
  using Device = void*;

  // Opened where it is, and started. Closed by the destructor.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool found() const { return library_; }
  bool started() const { return started_; }

  // Whether the function is there and went well.
  template <class... Arguments>
  bool ask(const char* function, Arguments... arguments) const {
    constexpr int kSuccess = 0;
    auto call = reinterpret_cast<int (*)(Arguments...)>(address_of(function));
    return call && call(arguments...) == kSuccess;
  }

  // The value that the function writes into its last argument; nullopt when the call fails.
  template <class T, class... Arguments>
  std::optional<T> value(const char* function, Arguments... arguments) const {
    T answer{};
    if (!ask(function, arguments..., &answer)) return std::nullopt;
    return answer;
  }

  template <class... Arguments>
  std::optional<std::string> text(const char* function, Arguments... arguments) const {
    std::array<char, 96> answer{};
    if (!ask(function, arguments..., answer.data(), static_cast<unsigned>(answer.size()))) return std::nullopt;
    return std::string(answer.data());
  }

 private:
  void* address_of(const char* function) const;

  void* library_;
  bool started_ = false;
};

}  // namespace sextant
