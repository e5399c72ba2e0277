// optimizer.safetensors of a checkpoint: the states of all weights as they are kept, in f32, bf16 or codes of 8 bits
// with the scales of their blocks. A run that keeps them otherwise converts what it reads: what is kept alike has the
// same bits, the rest is rounded to nearest.
#pragma once

#include <filesystem>
#include <vector>

#include "ckpt/safetensors_writer.h"
#include "comm/host_group.h"
#include "exec/executor.h"
#include "models/spec.h"
#include "optim/optimizer.h"

namespace sextant {

// Every state of the model, whichever rank holds it. Called by all ranks together: where a mesh cuts blocks of 8-bit
// codes, the ranks that hold the weight know that it is kept in f32.
std::vector<TensorSpec> optimizer_tensors(const StateView& values, const ModelSpec& spec, const Optimizer& optimizer,
                                          HostGroup& group);

// This rank's part of them.
void save_optimizer(const StateView& values, const std::vector<TensorSpec>& tensors, const std::filesystem::path& file,
                    Share share);

// UserError when the file holds states of another optimizer or of another model.
void load_optimizer(Bound& bound, const ModelSpec& spec, const Optimizer& optimizer, const std::filesystem::path& file);

}  // namespace sextant
