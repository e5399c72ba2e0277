#include "comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/bf16.h"
#include "base/error.h"
#include "base/f16.h"
#include "comm/payload_check.h"
#include "comm/sum_check.h"
#include "mesh/collective.h"

namespace sextant {
namespace {

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

void begin_send(Channel& channel, int to, ConstBytes bytes) {
  channel.under_way.push_back(channel.transport.send(to, channel.tag, bytes));
  channel.bytes_sent += static_cast<int64_t>(bytes.size());
  if (channel.check) channel.check->follow(channel, to, bytes);
}

void begin_receive(Channel& channel, int from, MutableBytes bytes) {
  channel.under_way.push_back(channel.transport.receive(from, channel.tag, bytes));
  if (channel.check) channel.check->expect(channel, from, bytes);
}

void finish(Channel& channel) {
  for (Ticket ticket : channel.under_way) channel.transport.wait(ticket);
  channel.under_way.clear();
  if (channel.check) channel.check->verify(channel);
}

void receive_now(Channel& channel, int from, MutableBytes bytes) {
  channel.transport.wait(channel.transport.receive(from, channel.tag, bytes));
  if (channel.check) channel.check->receive_hash(channel, from, bytes);
}

void copy_bytes(ConstBytes from, MutableBytes to) {
  if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

// Calls visit(index) for the other members, starting with the next: so that not all ranks turn to the first one at
// once.
template <class Visit>
void for_each_other(const Group& group, const Visit& visit) {
  for (int step = 1; step < group.size(); ++step) visit((group.self + step) % group.size());
}

int rank_at(const Group& group, int index) {
  return group.ranks[static_cast<size_t>(index)];
}

size_t size_of_part(const Group& group, size_t whole) {
  size_t parts = group.ranks.size();
  BUG_IF(whole % parts != 0, "{} bytes do not fall into {} equal parts", whole, parts);
  return whole / parts;
}

template <class Bytes>
Bytes equal_part(Bytes whole, size_t part, int index) {
  return whole.subspan(static_cast<size_t>(index) * part, part);
}

template <class T>
void combine_as(Reduction reduction, MutableBytes into, ConstBytes with) {
  BUG_IF(reinterpret_cast<uintptr_t>(into.data()) % alignof(T) != 0 ||
             reinterpret_cast<uintptr_t>(with.data()) % alignof(T) != 0,
         "operands of a reduction are not aligned to {} bytes", alignof(T));
  T* __restrict a = reinterpret_cast<T*>(into.data());
  const T* __restrict b = reinterpret_cast<const T*>(with.data());
  size_t count = into.size() / sizeof(T);
  if (reduction == Reduction::sum)
    for (size_t i = 0; i < count; ++i) a[i] += b[i];
  else
    for (size_t i = 0; i < count; ++i)
      a[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];  // NOLINT(misc-redundant-expression): NaN
}

// A float of 16 bits that is added and compared as an f32: every sum is rounded once.
template <float (*kValue)(uint16_t), uint16_t (*kBits)(float)>
struct Float16 {
  uint16_t bits;
  operator float() const { return kValue(bits); }
  Float16& operator+=(Float16 other) {
    bits = kBits(kValue(bits) + kValue(other.bits));
    return *this;
  }
};

// into = into ⊕ with
void combine(DType dtype, Reduction reduction, MutableBytes into, ConstBytes with) {
  switch (dtype) {
    case DType::f32:
      return combine_as<float>(reduction, into, with);
    case DType::f64:
      return combine_as<double>(reduction, into, with);
    case DType::bf16:
      return combine_as<Float16<bf16_value, bf16_bits>>(reduction, into, with);
    case DType::f16:
      return combine_as<Float16<f16_value, f16_bits>>(reduction, into, with);
    case DType::i32:
      return combine_as<int32_t>(reduction, into, with);
    case DType::i64:
      return combine_as<int64_t>(reduction, into, with);
    default:
      BUG("no reduction in {}", name_of(dtype));
  }
}

struct OrderedReduce {
  ConstBytes own;         // this rank's term
  MutableBytes result;    // all terms, combined in group order
  MutableBytes incoming;  // scratch for one term
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
};

// The terms of the others are already on their way here.
void reduce_in_order(Channel& channel, const Group& group, const OrderedReduce& call) {
  std::optional<SumCheck> check;
  if (channel.check && channel.check->asked().verify && call.reduction == Reduction::sum &&
      SumCheck::supports(call.dtype))
    check.emplace(call.dtype, channel.check->asked().signs);
  for (int index = 0; index < group.size(); ++index) {
    bool first = index == 0, own = index == group.self;
    MutableBytes place = first ? call.result : call.incoming;
    if (!own) receive_now(channel, rank_at(group, index), place);
    if (check) check->add(own ? call.own : ConstBytes(place));
    if (first && own) copy_bytes(call.own, call.result);
    if (!first) combine(call.dtype, call.reduction, call.result, own ? call.own : ConstBytes(call.incoming));
  }
  if (!check) return;
  if (std::optional<SumCheck::Fault> fault = check->fault_in(call.result))
    channel.check->report_sum(channel, fault->got, fault->expected, fault->allowed);
}

MutableBytes bytes_of(MutableBytes data, Part part, DType dtype) {
  return data.subspan(static_cast<size_t>(part.first * size_of(dtype)),
                      static_cast<size_t>(part.count * size_of(dtype)));
}

}  // namespace

Group group_of_ranks(std::vector<int> ranks, int own_rank) {
  auto at = std::find(ranks.begin(), ranks.end(), own_rank);
  BUG_IF(at == ranks.end(), "rank {} is not in its own group", own_rank);
  int self = static_cast<int>(at - ranks.begin());
  return {std::move(ranks), self};
}

Part part_of(int64_t count, int parts, int index) {
  int64_t each = count / parts, longer = count % parts;
  return {index * each + std::min<int64_t>(index, longer), each + (index < longer ? 1 : 0)};
}

void all_gather(Channel& channel, const Group& group, std::span<const std::byte> own, std::span<std::byte> whole) {
  size_t part = size_of_part(group, whole.size());
  BUG_IF(own.size() != part, "a part of {} bytes in an all-gather of {} x {}", own.size(), group.size(), part);
  for_each_other(group,
                 [&](int index) { begin_receive(channel, rank_at(group, index), equal_part(whole, part, index)); });
  for_each_other(group, [&](int index) { begin_send(channel, rank_at(group, index), own); });
  copy_bytes(own, equal_part(whole, part, group.self));
  finish(channel);
}

void all_to_all(Channel& channel, const Group& group, std::span<const std::byte> parts, std::span<std::byte> received) {
  size_t part = size_of_part(group, parts.size());
  BUG_IF(received.size() != parts.size(), "an all-to-all of {} bytes into {}", parts.size(), received.size());
  for_each_other(group,
                 [&](int index) { begin_receive(channel, rank_at(group, index), equal_part(received, part, index)); });
  for_each_other(group, [&](int index) { begin_send(channel, rank_at(group, index), equal_part(parts, part, index)); });
  copy_bytes(equal_part(parts, part, group.self), equal_part(received, part, group.self));
  finish(channel);
}

void reduce_scatter(Channel& channel, const Group& group, const ReduceScatter& call) {
  size_t part = size_of_part(group, call.parts.size());
  BUG_IF(part % static_cast<size_t>(size_of(call.dtype)) != 0, "{} bytes are not a whole number of {}", part,
         name_of(call.dtype));
  BUG_IF(call.own.size() != part, "a reduce-scatter of {} x {} bytes into {}", group.size(), part, call.own.size());
  BUG_IF(group.size() > 1 && call.scratch.size() < part, "a scratch of {} bytes for parts of {}", call.scratch.size(),
         part);
  for_each_other(group,
                 [&](int index) { begin_send(channel, rank_at(group, index), equal_part(call.parts, part, index)); });
  reduce_in_order(channel, group,
                  {.own = equal_part(call.parts, part, group.self),
                   .result = call.own,
                   .incoming = group.size() > 1 ? call.scratch.first(part) : MutableBytes(),
                   .dtype = call.dtype,
                   .reduction = call.reduction});
  finish(channel);
}

int64_t all_reduce_scratch(int64_t count, DType dtype, int ranks) {
  return ranks > 1 ? 2 * part_of(count, ranks, 0).count * size_of(dtype) : 0;
}

int64_t all_reduce_bytes_sent(int64_t count, DType dtype, const Group& group) {
  return elements_sent(Collective::all_reduce, count, 0, {group.size(), group.self}) * size_of(dtype);
}

// Reduce-scatter, then all-gather. A group too large for its data has empty parts; nothing is sent for them.
void all_reduce(Channel& channel, const Group& group, const AllReduce& call) {
  int64_t element = size_of(call.dtype), count = static_cast<int64_t>(call.data.size()) / element;
  int64_t scratch = all_reduce_scratch(count, call.dtype, group.size());
  BUG_IF(static_cast<int64_t>(call.data.size()) != count * element, "{} bytes are not a whole number of {}",
         call.data.size(), name_of(call.dtype));
  BUG_IF(static_cast<int64_t>(call.scratch.size()) < scratch, "a scratch of {} bytes, not {}", call.scratch.size(),
         scratch);
  if (group.size() == 1) return;

  auto part = [&](int index) { return bytes_of(call.data, part_of(count, group.size(), index), call.dtype); };
  MutableBytes own = part(group.self);
  for_each_other(group, [&](int index) {
    if (!part(index).empty()) begin_send(channel, rank_at(group, index), part(index));
  });
  if (!own.empty()) {
    MutableBytes result = call.scratch.first(own.size());
    reduce_in_order(channel, group,
                    {.own = own,
                     .result = result,
                     .incoming = call.scratch.subspan(own.size(), own.size()),
                     .dtype = call.dtype,
                     .reduction = call.reduction});
    copy_bytes(result, own);
  }
  finish(channel);  // the sums below arrive where the terms above were sent from

  for_each_other(group, [&](int index) {
    if (!part(index).empty()) begin_receive(channel, rank_at(group, index), part(index));
  });
  for_each_other(group, [&](int index) {
    if (!own.empty()) begin_send(channel, rank_at(group, index), own);
  });
  finish(channel);
}

void broadcast(Channel& channel, const Group& group, std::span<std::byte> data, int root) {
  BUG_IF(root < 0 || root >= group.size(), "no root {} in a group of {}", root, group.size());
  if (group.self != root) return receive_now(channel, rank_at(group, root), data);
  for_each_other(group, [&](int index) { begin_send(channel, rank_at(group, index), data); });
  finish(channel);
}

// Dissemination: after round k every member knows, directly or not, of the 2^(k+1) − 1 members before it.
void barrier(Channel& channel, const Group& group) {
  int n = group.size();
  for (int distance = 1; distance < n; distance *= 2) {
    begin_receive(channel, rank_at(group, (group.self - distance + n) % n), {});
    begin_send(channel, rank_at(group, (group.self + distance) % n), {});
    finish(channel);
  }
}

}  // namespace sextant
