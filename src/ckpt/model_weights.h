// A model's weights between a bound Program and the tensors of a Hugging Face directory. Names, packing and
// transposition come from the architecture's own map; what the file calls q_proj, k_proj and v_proj is one matrix in
// memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "ckpt/weights_reader.h"
#include "ckpt/weights_writer.h"
#include "exec/executor.h"
#include "models/expert_files.h"
#include "models/model.h"

namespace sextant {

// Reads every weight that this rank holds, or its part of it. UserError when one is missing or has another shape than
// the spec says, or holds a NaN or an infinity.
void load_weights(Bound& bound, const ModelSpec& spec, const WeightsReader& source);

// Reads the weights of a dense model's directory into a model with experts (models/upcycle.h). What that has no weights
// for stays as it is. UserError as for load_weights.
void load_upcycled_weights(Bound& bound, const ModelSpec& spec, const ModelSpec& dense, const WeightsReader& source);

// UserError where the spec's head is the embedding, but the file holds a head of other values: versions of transformers
// differ in which of the two they take.
void refuse_other_head(const ModelSpec& spec, const WeightsReader& source);

// UserError where files hold a weight a second time with other values (HfTensor::copy).
void refuse_other_copies(const ModelSpec& spec, const WeightsReader& source);

// "model.layers.61 and later hold 25 tensors that are not read: ...", where the files have layers behind those that the
// spec has, as DeepSeek-V3's have one for multi-token prediction; empty where there are none.
std::string unread_layers(const ModelSpec& spec, const WeightsReader& source);

// "vision_model.* and multi_modal_projector.* hold 400 tensors that are not read: ...", where the files hold models
// beside the one for text (HfWrapper); empty where there are none.
std::string unread_models(const ModelSpec& spec, const WeightsReader& source);

// How the directory of the source holds its experts.
ExpertFiles expert_files_in(const WeightsReader& source, const ModelSpec& spec);

// How weights are written.
struct WeightsForm {
  // The type each tensor is to have in the file; by default all are F32, as they are in memory.
  std::function<FileDType(std::string_view name)> dtype_of = {};
  ExpertFiles experts = ExpertFiles::as_listed;
};

// Writes what this rank holds into model*.safetensors of a directory (meant to be a StagedDirectory's): with
// Share::whole all of it, with Share::part beside other ranks that write theirs into the same files.
void save_weights(const StateView& state, const ModelSpec& spec, const std::filesystem::path& directory,
                  const WeightsForm& form = {}, Share share = Share::whole);

// The same weights in F32, in one safetensors file.
void save_master_weights(const StateView& state, const ModelSpec& spec, const std::filesystem::path& file,
                         Share share = Share::whole);

// "NAME holds 70000": the first tensor of which this rank holds an element that is finite in memory and would not be in
// a file of this type; empty where there is none.
std::string first_overflow(const StateView& state, const ModelSpec& spec, FileDType dtype);

// Every weight drawn afresh: element i of the parameter at a path depends on (seed, path, i) only, on every mesh.
void initialize_weights(Bound& bound, uint64_t seed);

}  // namespace sextant
