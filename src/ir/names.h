// The words that print and parse share: one table per enumeration, read in both directions.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "ir/op.h"
#include "ir/program.h"
#include "ir/value.h"

namespace sextant {

template <class Enum, size_t N>
using NameTable = std::array<std::pair<Enum, std::string_view>, N>;

inline constexpr NameTable<ValueKind, 10> kValueKindNames{{{ValueKind::activation, "activation"},
                                                           {ValueKind::parameter, "parameter"},
                                                           {ValueKind::gradient, "gradient"},
                                                           {ValueKind::tally, "tally"},
                                                           {ValueKind::state, "state"},
                                                           {ValueKind::low_bits, "low_bits"},
                                                           {ValueKind::quantized, "quantized"},
                                                           {ValueKind::cache, "cache"},
                                                           {ValueKind::feed, "feed"},
                                                           {ValueKind::fetch, "fetch"}}};
inline constexpr NameTable<Phase, 5> kPhaseNames{{{Phase::forward, "forward"},
                                                  {Phase::recompute, "recompute"},
                                                  {Phase::input_gradient, "input_gradient"},
                                                  {Phase::weight_gradient, "weight_gradient"},
                                                  {Phase::update, "update"}}};
inline constexpr NameTable<Lane, 2> kLaneNames{{{Lane::compute, "compute"}, {Lane::comm, "comm"}}};
inline constexpr NameTable<MemorySpace, 3> kSpaceNames{{{MemorySpace::device, name_of(MemorySpace::device)},
                                                        {MemorySpace::host, name_of(MemorySpace::host)},
                                                        {MemorySpace::nvme, name_of(MemorySpace::nvme)}}};
inline constexpr NameTable<RunsFor, 3> kRunsForNames{
    {{RunsFor::every_microbatch, "every"}, {RunsFor::first_microbatch, "first"}, {RunsFor::last_microbatch, "last"}}};
inline constexpr NameTable<TallyOf, 4> kTallyNames{{{TallyOf::load, "load"},
                                                    {TallyOf::lost_rows, "lost_rows"},
                                                    {TallyOf::measured, "measured"},
                                                    {TallyOf::small_gradients, "small_gradients"}}};
inline constexpr NameTable<MeasuredTensor, 8> kMeasuredTensorNames{
    {{MeasuredTensor::activation, "activation"},
     {MeasuredTensor::activation_gradient, "activation_gradient"},
     {MeasuredTensor::inner_gradient, "inner_gradient"},
     {MeasuredTensor::fp8_activation, "fp8_activation"},
     {MeasuredTensor::fp8_gradient, "fp8_gradient"},
     {MeasuredTensor::attention, "attention"},
     {MeasuredTensor::gradient, "gradient"},
     {MeasuredTensor::weight, "weight"}}};
inline constexpr NameTable<MeasuredNumbers, 2> kMeasuredNumbersNames{
    {{MeasuredNumbers::sums, "sums"}, {MeasuredNumbers::largest, "largest"}}};
inline constexpr NameTable<RegionKind, 4> kRegionNames{{{RegionKind::forward, "forward"},
                                                        {RegionKind::backward, "backward"},
                                                        {RegionKind::weight, "weight"},
                                                        {RegionKind::update, "update"}}};
inline constexpr NameTable<BufferClass, 8> kBufferNames{{{BufferClass::weights, "weights"},
                                                         {BufferClass::gradients, "gradients"},
                                                         {BufferClass::optimizer, "optimizer"},
                                                         {BufferClass::cache, "cache"},
                                                         {BufferClass::feeds, "feeds"},
                                                         {BufferClass::saved, "saved"},
                                                         {BufferClass::activations, "activations"},
                                                         {BufferClass::workspace, "workspace"}}};

template <class Enum, size_t N>
constexpr std::string_view name_in(const NameTable<Enum, N>& table, Enum value) {
  for (const auto& [entry, name] : table)
    if (entry == value) return name;
  return "?";
}

template <class Enum, size_t N>
constexpr std::optional<Enum> find_name(const NameTable<Enum, N>& table, std::string_view name) {
  for (const auto& [entry, text] : table)
    if (text == name) return entry;
  return std::nullopt;
}

}  // namespace sextant
