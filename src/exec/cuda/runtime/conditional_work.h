// ConditionalWork: one of several pieces of work, which the device chooses by a number in its own memory, without the
// host knowing.
//
// On a stream that is captured into a graph the pieces are bodies of a conditional node, so that those that are not
// chosen cost nothing. On any other stream nothing can be chosen, and what the caller has for that case is put there.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <span>

namespace sextant {

class ConditionalWork {
 public:
  using Work = std::function<void(cudaStream_t)>;

  ConditionalWork();  // on the device in use
  ~ConditionalWork();
  ConditionalWork(const ConditionalWork&) = delete;
  ConditionalWork& operator=(const ConditionalWork&) = delete;

  // choices[*choice] where the stream is captured, `choice` being on the device when the graph is replayed: nothing
  // where it is none of them. Else `unchosen`, which must be right whatever is chosen.
  void put(cudaStream_t stream, const int32_t* choice, std::span<const Work> choices, const Work& unchosen) const;

 private:
  cudaStream_t body_ = nullptr;  // that bodies are captured from
};

}  // namespace sextant
