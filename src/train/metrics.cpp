#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/run_file.h"

namespace sextant {

namespace {

// JSON has no NaN: a number that is not finite is left out of the line, and named with what it was in its own field.
class Line {
 public:
  void add(std::string_view name, double x) {
    if (std::isfinite(x))
      json_[std::string(name)] = x;
    else
      non_finite_[std::string(name)] = std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  }
  void add(std::string_view name, int64_t x) { json_[std::string(name)] = x; }
  void add(std::string_view name, const std::vector<double>& list) { json_[std::string(name)] = list; }
  void add(std::string_view name, const std::vector<int64_t>& list) { json_[std::string(name)] = list; }
  void add_flag(std::string_view name) { json_[std::string(name)] = true; }
  void add_unknown(std::string_view name) { json_[std::string(name)] = nullptr; }

  // Adds the numbers that were left out so far.
  void add_non_finite(std::string_view name) {
    if (!non_finite_.empty()) json_[std::string(name)] = non_finite_;
  }

  std::string text() const { return json_.dump(); }

 private:
  nlohmann::ordered_json json_, non_finite_;
};

struct FieldOfLine {
  MetricField about;
  void (*write)(Line& line, std::string_view name, const StepMetrics& m);
};

// A list of numbers of layers; JSON has null where one is not finite.
template <TensorStatistics::List TensorStatistics::*kList>
void write_layers(Line& line, std::string_view name, const StepMetrics& m) {
  if (m.tensors && !((*m.tensors).*kList).empty()) line.add(name, (*m.tensors).*kList);
}

constexpr std::string_view kMeasured = "every `log.tensor_stats_every` steps",
                           kMeasuredNarrow = "the same, where the format has less range than f32",
                           kMeasuredFp8 = "the same, where products are in fp8";

constexpr std::string_view kEveryStep = "every step", kEvaluated = "steps that end with an evaluation",
                           kWithExperts = "every step of a model with experts",
                           kWithCorrectionBias = "every step of a model with `model.experts.correction_bias`",
                           kRepeated = "steps that were repeated",
                           kFewRanks = "every step of a run with 2 to 256 ranks";

constexpr size_t kMostRanksListed = 256;
bool lists_ranks(const StepMetrics& m) {
  return m.own_s_by_rank.size() > 1 && m.own_s_by_rank.size() <= kMostRanksListed;
}

// The one list of what a line holds: what is written, and what docs/metrics.md says of it.
constexpr std::array kFields{
    FieldOfLine{{"step", "", kEveryStep, "Which step, from 1. Each stands once, in order, also after a resume."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.step); }},
    FieldOfLine{{"loss", "nats per token", kEveryStep,
                 "Mean cross-entropy over all tokens of the step, of all ranks and microbatches, before the update; "
                 "z-loss is part of it where `optimizer.z_loss` is set."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.loss); }},
    FieldOfLine{
        {"balance_loss", "", "models with experts whose `model.experts.balance_loss` is above 0",
         "The loss that balances experts, with its coefficient: mean over microbatches, trained on beside `loss`."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.balance_loss) line.add(name, *m.balance_loss);
        }},
    FieldOfLine{
        {"router_z_loss", "", "models with experts whose `model.experts.z_loss` is above 0",
         "The loss that keeps the logits of routers small, with its coefficient: mean over microbatches, summed "
         "over layers, trained on beside `loss`."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.router_z_loss) line.add(name, *m.router_z_loss);
        }},
    FieldOfLine{
        {"mtp_loss", "nats per token", "models with multi-token prediction (`model.mtp.depths`)",
         "Mean cross-entropy of the tokens that are predicted further ahead, over those that count, and over depths; "
         "trained on beside `loss`, times `model.mtp.loss_weight`."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.mtp_loss) line.add(name, *m.mtp_loss);
        }},
    FieldOfLine{{"grad_norm", "", kEveryStep,
                 "Euclidean norm of the whole gradient, over all ranks, before clipping (`optimizer.clip`)."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.grad_norm); }},
    FieldOfLine{{"loss_scale", "", "every step where `train.loss_scale.initial` is above 0",
                 "What the loss of the step was multiplied by; `loss` and `grad_norm` are without it. With "
                 "`update_skipped` gradients were too large for it."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.loss_scale) line.add(name, *m.loss_scale);
                }},
    FieldOfLine{{"lr", "", kEveryStep, "Learning rate of the step."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.lr); }},
    FieldOfLine{{"tokens", "tokens", kEveryStep, "Tokens trained on since the first step of the run, with this step."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.tokens); }},
    FieldOfLine{
        {"tokens_per_s", "tokens per second", kEveryStep, "Tokens of the step divided by `step_s`, over all ranks."},
        [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.tokens_per_s); }},
    FieldOfLine{{"step_s", "seconds", kEveryStep,
                 "Wall-clock time of the step; evaluations and checkpoints are not part of it."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.step_s); }},
    FieldOfLine{{"input_s", "seconds", kEveryStep,
                 "Time of the step in which samples were read and handed over, on the rank where that took longest."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (!m.input_s_by_rank.empty()) line.add(name, *std::ranges::max_element(m.input_s_by_rank));
                }},
    FieldOfLine{{"processor_s", "seconds", kEveryStep,
                 "Processor time that the process of rank 0 used in the step, all its threads together."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.processor_s); }},
    FieldOfLine{{"own_s_by_rank", "list of seconds", kFewRanks,
                 "Time of the step that each rank spent neither in messages nor on input. The largest is the slowest "
                 "rank's, for which the others wait. On GPUs, which make their messages themselves, these are part "
                 "of it."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (lists_ranks(m)) line.add(name, m.own_s_by_rank);
                }},
    FieldOfLine{{"message_s_by_rank", "list of seconds", kFewRanks,
                 "Time of the step that each rank spent in messages, waiting for other ranks included."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (lists_ranks(m)) line.add(name, m.message_s_by_rank);
                }},
    FieldOfLine{{"model_flops", "FLOPs", kEveryStep,
                 "FLOPs that the model asks for in the step, over all ranks: its products forward and backward, and "
                 "attention as far as it is causal; what is recomputed does not count. What `plan` prints for a token, "
                 "times the tokens of the step."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.model_flops); }},
    FieldOfLine{{"mfu", "fraction", kEveryStep,
                 "Model FLOPs utilisation: `model_flops` divided by `step_s` and by what all devices together do at "
                 "most. `null`: that is not known of this machine; `bench machine --save here` measures it."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  m.mfu ? line.add(name, *m.mfu) : line.add_unknown(name);
                }},
    FieldOfLine{{"arena_bytes", "bytes", kEveryStep,
                 "Memory that rank 0 allocated at the start for weights, optimizer state, activations and scratch: "
                 "what `plan` prints."},
                [](Line& line, std::string_view name, const StepMetrics& m) { line.add(name, m.arena_bytes); }},
    FieldOfLine{{"host_arena_bytes", "bytes", "every step with `offload`",
                 "Memory of the host that rank 0 allocated at the start for what is offloaded: what `plan` prints."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.host_arena_bytes > 0) line.add(name, m.host_arena_bytes);
                }},
    FieldOfLine{{"nvme_arena_bytes", "bytes", "every step with `offload.to` nvme",
                 "Size of the file that rank 0 reserved at the start under `offload.path`: what `plan` prints."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.nvme_arena_bytes > 0) line.add(name, m.nvme_arena_bytes);
                }},
    FieldOfLine{{"arena_bytes_by_rank", "list of bytes", "the first step after a start or resume",
                 "The same of every rank, in the order of ranks."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (!m.arena_bytes_by_rank.empty()) line.add(name, m.arena_bytes_by_rank);
                }},
    FieldOfLine{
        {"expert_load_peak", "list", kWithExperts,
         "Of each layer with experts, in their order: the slots of the busiest expert divided by the mean. 1: all "
         "get the same. Over all tokens of the step, of all ranks and microbatches, as the two below."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.expert_loads) line.add(name, m.expert_loads->peak);
        }},
    FieldOfLine{
        {"expert_load_entropy", "list", kWithExperts,
         "Entropy of how slots spread over experts, divided by the largest possible: 1 where all get the same, 0 "
         "where one gets all."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.expert_loads) line.add(name, m.expert_loads->entropy);
        }},
    FieldOfLine{{"unused_experts", "list", kWithExperts, "Experts that got no token in the step."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.expert_loads) line.add(name, m.expert_loads->unused);
                }},
    FieldOfLine{{"correction_bias_min", "list", kWithCorrectionBias,
                 "Of each layer with experts, in their order: the least correction bias of an expert, after the step's "
                 "update. Biases that keep growing are a router that the bias cannot balance."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.expert_loads && !m.expert_loads->bias_least.empty()) line.add(name, m.expert_loads->bias_least);
                }},
    FieldOfLine{{"correction_bias_max", "list", kWithCorrectionBias, "Likewise the largest."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.expert_loads && !m.expert_loads->bias_most.empty()) line.add(name, m.expert_loads->bias_most);
                }},
    FieldOfLine{
        {"lost_rows", "rows", kRepeated,
         "Rows that found no place on their way to experts (`mesh.expert_capacity`), over all layers, ranks and "
         "microbatches. That attempt at the step changed nothing; all other fields are of the repeated one."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.expert_rows && m.expert_rows->lost > 0) line.add(name, m.expert_rows->lost);
        }},
    FieldOfLine{{"expert_rounds", "", kRepeated,
                 "Rounds of rows to experts in which the repeated step was done: 2, 4, 8 and so on, or as many as any "
                 "routing needs."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.expert_rows && m.expert_rows->lost > 0) line.add(name, m.expert_rows->rounds);
                }},
    FieldOfLine{
        {"repeated_steps", "steps", "every step where `mesh.expert_capacity` is below what a routing can ask for",
         "Steps repeated since the start or resume, with this one."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.expert_rows) line.add(name, m.expert_rows->repeated_steps);
        }},
    FieldOfLine{{"dropped_rows", "rows", "models whose `model.experts.drop_above` is above 0",
                 "Slots of tokens and experts that were dropped, over all layers and microbatches of the step."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.dropped_rows) line.add(name, *m.dropped_rows);
                }},
    FieldOfLine{
        {"grad_noise_scale", "tokens", "every step where `log.grad_noise_scale` is set, once it can be told",
         "Gradient noise scale, averaged over about 50 steps since the start or resume: the batch size above which "
         "a larger one saves few steps (tensors.md)."},
        [](Line& line, std::string_view name, const StepMetrics& m) {
          if (m.grad_noise_scale) line.add(name, *m.grad_noise_scale);
        }},
    FieldOfLine{{"activation_rms", "list", kMeasured,
                 "Of each layer: root mean square of what it hands to the next, over all tokens of the step. This and "
                 "the lists below: [tensors.md](tensors.md)."},
                write_layers<&TensorStatistics::activation_rms>},
    FieldOfLine{{"activation_max", "list", kMeasured, "Largest magnitude of the same."},
                write_layers<&TensorStatistics::activation_max>},
    FieldOfLine{{"activation_underflow", "list", kMeasured,
                 "Share of its elements that are zero in their number format, or in `log.tensor_stats_format`."},
                write_layers<&TensorStatistics::activation_underflow>},
    FieldOfLine{{"activation_overflow", "list", kMeasured,
                 "Share of its elements at or beyond the largest number of that format."},
                write_layers<&TensorStatistics::activation_overflow>},
    FieldOfLine{
        {"activation_gradient_rms", "list", kMeasured,
         "Of each layer: root mean square of the gradient of the loss with respect to what it hands to the next."},
        write_layers<&TensorStatistics::activation_gradient_rms>},
    FieldOfLine{{"activation_gradient_max", "list", kMeasured, "Largest magnitude of the same."},
                write_layers<&TensorStatistics::activation_gradient_max>},
    FieldOfLine{{"gradient_underflow", "list", kMeasured,
                 "Share of that gradient's elements that are zero in their number format, with the loss scale where "
                 "there is one."},
                write_layers<&TensorStatistics::gradient_underflow>},
    FieldOfLine{{"gradient_overflow", "list", kMeasured,
                 "Share of its elements at or beyond the largest number of that format."},
                write_layers<&TensorStatistics::gradient_overflow>},
    FieldOfLine{{"inner_gradient_underflow", "list", kMeasuredNarrow,
                 "Of the gradients of what its linears read, in each layer: share of elements that are zero in that "
                 "format."},
                write_layers<&TensorStatistics::inner_gradient_underflow>},
    FieldOfLine{{"fp8_activation_underflow", "list", kMeasuredFp8,
                 "Of what products in fp8 read forward, in each layer: share of elements that rounding made zero."},
                write_layers<&TensorStatistics::fp8_activation_underflow>},
    FieldOfLine{{"fp8_activation_saturation", "list", kMeasuredFp8,
                 "Share of them that became the largest number of the format."},
                write_layers<&TensorStatistics::fp8_activation_saturation>},
    FieldOfLine{{"fp8_gradient_underflow", "list", kMeasuredFp8, "The same of gradients: made zero."},
                write_layers<&TensorStatistics::fp8_gradient_underflow>},
    FieldOfLine{{"fp8_gradient_saturation", "list", kMeasuredFp8, "The same of gradients: the largest number."},
                write_layers<&TensorStatistics::fp8_gradient_saturation>},
    FieldOfLine{{"attention_logit_max", "list", kMeasured,
                 "Largest score of a query and a key that enters the softmax of the layer's attention."},
                write_layers<&TensorStatistics::attention_logit_max>},
    FieldOfLine{{"gradient_rms", "list", kMeasured,
                 "Of each layer: root mean square of the gradients of its weights, before clipping."},
                write_layers<&TensorStatistics::gradient_rms>},
    FieldOfLine{{"gradient_max", "list", kMeasured, "Largest magnitude of the same."},
                write_layers<&TensorStatistics::gradient_max>},
    FieldOfLine{{"weight_rms", "list", kMeasured, "Of each layer: root mean square of its weights, after the update."},
                write_layers<&TensorStatistics::weight_rms>},
    FieldOfLine{{"weight_max", "list", kMeasured, "Largest magnitude of the same."},
                write_layers<&TensorStatistics::weight_max>},
    FieldOfLine{{"update_ratio", "list", kMeasured,
                 "Of each layer: norm of the step's update of its weights, divided by the norm of the weights."},
                write_layers<&TensorStatistics::update_ratio>},
    FieldOfLine{{"validation_loss", "nats per token", kEvaluated,
                 "Loss on the validation data after the step's update (`train.eval_every`, and the last step)."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.validation_loss) line.add(name, *m.validation_loss);
                }},
    FieldOfLine{{"perplexity", "", kEvaluated, "e to the validation loss."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (auto perplexity = m.perplexity()) line.add(name, *perplexity);
                }},
    FieldOfLine{{"bits_per_byte", "bits per byte of text", "the same, where there is a tokenizer",
                 "The validation loss per byte of text: comparable between tokenizers."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.bits_per_byte) line.add(name, *m.bits_per_byte);
                }},
    FieldOfLine{{"update_skipped", "",
                 "steps whose gradient norm is not finite, or above the limit of `train.spike.action = \"skip\"`",
                 "`true`: no weight was changed in this step."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.is_update_skipped()) line.add_flag(name);
                }},
    FieldOfLine{{"norm_limit", "", "the same, where there was such a limit",
                 "The gradient norm above which the update of this step was left out."},
                [](Line& line, std::string_view name, const StepMetrics& m) {
                  if (m.is_update_skipped() && m.norm_limit) line.add(name, *m.norm_limit);
                }},
    // Last: by then it is known what was left out.
    FieldOfLine{{"non_finite", "", "steps with a number that is not finite",
                 "The fields that are missing from this line for that reason, each with `nan`, `inf` or `-inf`: JSON "
                 "has no such numbers."},
                [](Line& line, std::string_view name, const StepMetrics&) { line.add_non_finite(name); }},
};

std::string kept_lines(const std::filesystem::path& path, int64_t resume_step) {
  std::string kept;
  if (resume_step == 0 || !std::filesystem::exists(path)) return kept;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    // A line cut off by a crash does not parse, and belongs to a step that was not saved.
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() && json["step"] <= resume_step)
      kept += line + "\n";
  }
  return kept;
}

}  // namespace

std::vector<MetricField> metric_fields() {
  std::vector<MetricField> fields;
  for (const FieldOfLine& field : kFields) fields.push_back(field.about);
  return fields;
}

MetricsFile::MetricsFile(std::filesystem::path path, int64_t resume_step) : path_(std::move(path)) {
  write_file_atomically(path_, kept_lines(path_, resume_step));
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file_.is_open()) throw_disk_error(path_, "cannot open for writing", errno);
}

void MetricsFile::append(const StepMetrics& m) {
  Line line;
  for (const FieldOfLine& field : kFields) field.write(line, field.about.name, m);
  std::string text = line.text() + "\n";
  if (!write_all(file_.get(), text)) throw_disk_error(path_, "cannot write", errno);
}

}  // namespace sextant
