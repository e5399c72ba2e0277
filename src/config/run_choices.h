// Enums of the config that belong to no other module, each with its words. Those of meshes and Programs stand in
// ir/plan.h and ir/precision.h, those of optimizers in optim/, of schedules in schedule/, of models in models/spec.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "describe/choice.h"

namespace sextant {

enum class DeviceChoice : uint8_t { automatic, cpu, cuda };

inline constexpr Choice<DeviceChoice> kDeviceChoices[] = {
    {DeviceChoice::automatic, "auto", "the GPU when there is one"},
    {DeviceChoice::cpu, "cpu"},
    {DeviceChoice::cuda, "cuda"},
};
constexpr const auto& choices_of(DeviceChoice) {
  return kDeviceChoices;
}

// data.format.
enum class DataFormat : uint8_t { automatic, text, jsonl, tokens_u16, tokens_u32, megatron };

struct DataFormatChoice : Choice<DataFormat> {
  bool holds_tokens = false;
};

inline constexpr DataFormatChoice kDataFormats[] = {
    {{DataFormat::automatic, "auto", "by the names of the files"}},
    {{DataFormat::text, "text"}},
    {{DataFormat::jsonl, "jsonl"}},
    {{DataFormat::tokens_u16, "tokens-u16"}, true},
    {{DataFormat::tokens_u32, "tokens-u32"}, true},
    {{DataFormat::megatron, "megatron"}, true},
};
constexpr const auto& choices_of(DataFormat) {
  return kDataFormats;
}

enum class ValidationSplit : uint8_t { documents, tail };

inline constexpr Choice<ValidationSplit> kValidationSplits[] = {
    {ValidationSplit::documents, "documents", "a sample of documents, chosen by `train.seed`"},
    {ValidationSplit::tail, "tail", "the last tokens of every file"},
};
constexpr const auto& choices_of(ValidationSplit) {
  return kValidationSplits;
}

enum class Reproducible : uint8_t { none, mesh };

inline constexpr Choice<Reproducible> kReproducible[] = {
    {Reproducible::none, "none"},
    {Reproducible::mesh, "mesh"},
};
constexpr const auto& choices_of(Reproducible) {
  return kReproducible;
}

enum class SpikeAction : uint8_t { none, skip, rewind, lower_rate };

inline constexpr Choice<SpikeAction> kSpikeActions[] = {
    {SpikeAction::none, "none", "it is only reported"},
    {SpikeAction::skip, "skip", "its update is not applied, which the gradient norm alone decides"},
    {SpikeAction::rewind, "rewind", "the run goes back to a checkpoint and leaves out batches"},
    {SpikeAction::lower_rate, "lower_rate", "the learning rate is lowered for a while"},
};
constexpr const auto& choices_of(SpikeAction) {
  return kSpikeActions;
}

enum class OffloadedActivations : uint8_t { none, block };

inline constexpr Choice<OffloadedActivations> kOffloadedActivations[] = {
    {OffloadedActivations::none, "none"},
    {OffloadedActivations::block, "block"},
};
constexpr const auto& choices_of(OffloadedActivations) {
  return kOffloadedActivations;
}

enum class OffloadTarget : uint8_t { host, nvme };

inline constexpr Choice<OffloadTarget> kOffloadTargets[] = {
    {OffloadTarget::host, "host", "in the memory of the host"},
    {OffloadTarget::nvme, "nvme",
     "in a file of each rank under `offload.path`, read ahead of their step and written back behind it"},
};
constexpr const auto& choices_of(OffloadTarget) {
  return kOffloadTargets;
}

// log.tensor_stats_format.
enum class StatisticsFormat : uint8_t { automatic, bf16, f16, e4m3, e5m2 };

struct StatisticsFormatChoice : Choice<StatisticsFormat> {
  std::optional<DType> dtype = {};
};

inline constexpr StatisticsFormatChoice kStatisticsFormats[] = {
    {{StatisticsFormat::automatic, "auto", "the one each is kept in"}},
    {{StatisticsFormat::bf16, "bf16"}, DType::bf16},
    {{StatisticsFormat::f16, "f16"}, DType::f16},
    {{StatisticsFormat::e4m3, "e4m3"}, DType::e4m3},
    {{StatisticsFormat::e5m2, "e5m2"}, DType::e5m2},
};
constexpr const auto& choices_of(StatisticsFormat) {
  return kStatisticsFormats;
}

// Types that some keys choose among.
inline constexpr Choice<DType> kSavedTypes[] = {{DType::f32, "f32"}, {DType::bf16, "bf16"}, {DType::f16, "f16"}};
inline constexpr Choice<DType> kF32OrBf16[] = {{DType::f32, "f32"}, {DType::bf16, "bf16"}};

// checkpoint.accept_changed: parts of a run's identity that a resumed run may have another of.
enum class IdentityPart : uint8_t { tokenizer, data, model };

inline constexpr Choice<IdentityPart> kIdentityParts[] = {
    {IdentityPart::tokenizer, "tokenizer"},
    {IdentityPart::data, "data"},
    {IdentityPart::model, "model"},
};
constexpr const auto& choices_of(IdentityPart) {
  return kIdentityParts;
}

// checkpoint.resume: a mode, or the path of a checkpoint.
class ResumeChoice {
 public:
  enum class Mode : uint8_t { latest, never, path };

  ResumeChoice() = default;
  static ResumeChoice from_text(std::string_view text) {
    ResumeChoice choice;
    for (const Choice<Mode>& known : kModes)
      if (known.word == text) return choice.mode_ = known.value, choice;
    choice.mode_ = Mode::path, choice.path_ = text;
    return choice;
  }
  std::string text() const { return mode_ == Mode::path ? path_ : std::string(word_of_mode()); }

  bool is_latest() const { return mode_ == Mode::latest; }
  bool is_never() const { return mode_ == Mode::never; }
  const std::string& path() const { return path_; }  // empty unless one is named
  bool operator==(const ResumeChoice&) const = default;

 private:
  static constexpr Choice<Mode> kModes[] = {{Mode::latest, "auto"}, {Mode::never, "never"}};
  std::string_view word_of_mode() const { return kModes[mode_ == Mode::never ? 1 : 0].word; }

  Mode mode_ = Mode::latest;
  std::string path_;
};

}  // namespace sextant
