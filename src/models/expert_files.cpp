#include "models/expert_files.h"

#include <utility>

#include "models/models.h"

namespace sextant {

namespace {

// Whether `next` only goes on where `first` ends, in the file and in the parameter.
bool is_next_part(const HfTensor& first, const HfTensor& next) {
  return next.name == first.name && next.parameter == first.parameter && next.slices > 0 && next.slice == first.slice &&
         next.file_row == first.file_row + first.rows && next.first_row == first.first_row + first.rows;
}

HfTensor placed_in_stack(HfTensor tensor, ExpertFiles files) {
  if (tensor.stacked) {
    StackedRows place = *std::exchange(tensor.stacked, std::nullopt);
    tensor.name = std::move(place.name);
    if (place.slices == 0) return tensor;
    tensor.slice = place.slice, tensor.slices = place.slices;
    tensor.file_row = place.file_row, tensor.file_rows = place.file_rows;
  }
  if (tensor.slices > 0)
    tensor.order = files == ExpertFiles::stacked_transposed ? HfTensor::Order::transposed : HfTensor::Order::as_is;
  return tensor;
}

}  // namespace

std::vector<HfTensor> tensors_in(const ModelSpec& spec, ExpertFiles files) {
  std::vector<HfTensor> listed = model_of(spec).tensors(spec);
  if (files == ExpertFiles::as_listed) return listed;
  std::vector<HfTensor> stacked;
  for (HfTensor& tensor : listed) {
    HfTensor placed = placed_in_stack(std::move(tensor), files);
    if (!stacked.empty() && is_next_part(stacked.back(), placed))
      stacked.back().rows += placed.rows;  // gate and up of an expert: one matrix, written at once
    else
      stacked.push_back(std::move(placed));
  }
  return stacked;
}

}  // namespace sextant
