#include "ckpt/torch_pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "ckpt/json_walk.h"
#include "ckpt/tensor_file.h"
#include "ckpt/torch_globals.h"

namespace sextant {

namespace {

// Objects live in one list and name each other by position, so that a pickle that refers to itself or nests deeply
// costs nothing but its bytes.
using Id = uint32_t;

struct Object {
  enum class Kind : uint8_t { mark, none, boolean, integer, text, tuple, dict, global, storage, tensor };
  Kind kind = Kind::none;
  int64_t number = 0;                   // of a boolean, an integer; storage: bytes; tensor: position among tensors_
  std::string_view text;                // of a text; storage: its key
  const TorchGlobal* global = nullptr;  // of a global; storage: its type
  std::vector<Id> items;                // of a tuple; of a dict keys and values in turn
};
using Kind = Object::Kind;

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 10> kNames{"a mark",  "None",         "a boolean", "an integer", "a string",
                                                    "a tuple", "a dictionary", "a name",    "a storage",  "a tensor"};
  return kNames.at(static_cast<size_t>(kind));
}

// For the message: the name that Python's pickletools has for an opcode that is not allowed.
std::string refused_opcode(uint8_t opcode) {
  // clang-format off
  static constexpr std::pair<uint8_t, std::string_view> kNames[] = {
      {'i', "INST"}, {'o', "OBJ"}, {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"}, {0x82, "EXT1"}, {0x83, "EXT2"},
      {0x84, "EXT4"}, {'P', "PERSID"}, {'0', "POP"}, {'1', "POP_MARK"}, {'2', "DUP"}, {'g', "GET"}, {'p', "PUT"},
      {'I', "INT"}, {'L', "LONG"}, {0x8b, "LONG4"}, {'F', "FLOAT"}, {'G', "BINFLOAT"}, {'S', "STRING"},
      {'T', "BINSTRING"}, {'U', "SHORT_BINSTRING"}, {'B', "BINBYTES"}, {'C', "SHORT_BINBYTES"}, {'V', "UNICODE"},
      {0x8d, "BINUNICODE8"}, {0x8e, "BINBYTES8"}, {'l', "LIST"}, {']', "EMPTY_LIST"}, {'a', "APPEND"},
      {'e', "APPENDS"}, {'d', "DICT"}, {0x8f, "EMPTY_SET"}, {0x90, "ADDITEMS"}, {0x91, "FROZENSET"},
  };
  // clang-format on
  for (const auto& [byte, name] : kNames)
    if (byte == opcode) return std::string(name);
  return fmt::format("{:#04x}", opcode);
}

class Unpickler {
 public:
  Unpickler(std::string_view place, std::span<const std::byte> bytes) : place_(place), bytes_(bytes) {}

  std::vector<PickledTensor> read();

 private:
  using Action = void (Unpickler::*)();
  static Action find_action(uint8_t opcode);  // null for one that is not allowed

  // Opcodes.
  void proto();
  void frame() { take<uint64_t>(); }
  void mark() { push({.kind = Kind::mark}); }
  void none() { push({.kind = Kind::none}); }
  void new_true() { push({.kind = Kind::boolean, .number = 1}); }
  void new_false() { push({.kind = Kind::boolean}); }
  void bin_int() { push_integer(take<int32_t>()); }
  void bin_int1() { push_integer(take<uint8_t>()); }
  void bin_int2() { push_integer(take<uint16_t>()); }
  void long1();
  void bin_unicode() { push_text(take<uint32_t>()); }
  void short_bin_unicode() { push_text(take<uint8_t>()); }
  void empty_tuple() { push({.kind = Kind::tuple}); }
  void tuple() { push({.kind = Kind::tuple, .items = take_to_mark()}); }
  void tuple1() { push_tuple(1); }
  void tuple2() { push_tuple(2); }
  void tuple3() { push_tuple(3); }
  void empty_dict() { push({.kind = Kind::dict}); }
  void set_item() { set_items_of(take_top(2)); }
  void set_items() { set_items_of(take_to_mark()); }
  void global();
  void stack_global();
  void bin_put() { memo_[take<uint8_t>()] = top(); }
  void long_bin_put() { memo_[take<uint32_t>()] = top(); }
  void memoize() { memo_[static_cast<uint32_t>(memo_.size())] = top(); }
  void bin_get() { push_remembered(take<uint8_t>()); }
  void long_bin_get() { push_remembered(take<uint32_t>()); }
  void bin_pers_id();
  void reduce();
  void build();

  // Functions that REDUCE calls.
  void make_tensor(const TorchGlobal& function, std::span<const Id> arguments);
  void take_parameter(std::span<const Id> arguments);

  template <class T>
  T take() {
    T value;
    std::string_view raw = take_text(sizeof value);
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view take_text(uint64_t size);
  std::string_view take_line();

  void push(Object object);
  void push_integer(int64_t number) { push({.kind = Kind::integer, .number = number}); }
  void push_text(uint64_t size) { push({.kind = Kind::text, .text = take_text(size)}); }
  void push_tuple(size_t size) { push({.kind = Kind::tuple, .items = take_top(size)}); }
  void push_global(std::string_view module, std::string_view name);
  void push_remembered(uint32_t index);
  void set_items_of(const std::vector<Id>& items);
  Id top();
  Id pop();
  std::vector<Id> take_top(size_t count);
  std::vector<Id> take_to_mark();
  const Object& expect(Id id, Kind kind, std::string_view what);
  std::vector<int64_t> integers(Id id, std::string_view what);
  std::vector<PickledTensor> tensors_of(const Object& dict);

  [[noreturn]] void refuse(std::string got, std::string expected) const;
  [[noreturn]] void refuse_code(std::string got) const;

  std::string_view place_;
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  std::vector<Object> objects_;
  std::vector<Id> stack_;
  std::unordered_map<uint32_t, Id> memo_;
  std::vector<PickledTensor> tensors_;
};

auto Unpickler::find_action(uint8_t opcode) -> Action {
  using U = Unpickler;
  static constexpr std::pair<uint8_t, Action> kActions[] = {
      {0x80, &U::proto},              // PROTO
      {0x95, &U::frame},              // FRAME
      {'(', &U::mark},                // MARK
      {'N', &U::none},                // NONE
      {0x88, &U::new_true},           // NEWTRUE
      {0x89, &U::new_false},          // NEWFALSE
      {'J', &U::bin_int},             // BININT
      {'K', &U::bin_int1},            // BININT1
      {'M', &U::bin_int2},            // BININT2
      {0x8a, &U::long1},              // LONG1
      {'X', &U::bin_unicode},         // BINUNICODE
      {0x8c, &U::short_bin_unicode},  // SHORT_BINUNICODE
      {')', &U::empty_tuple},         // EMPTY_TUPLE
      {'t', &U::tuple},               // TUPLE
      {0x85, &U::tuple1},             // TUPLE1
      {0x86, &U::tuple2},             // TUPLE2
      {0x87, &U::tuple3},             // TUPLE3
      {'}', &U::empty_dict},          // EMPTY_DICT
      {'s', &U::set_item},            // SETITEM
      {'u', &U::set_items},           // SETITEMS
      {'c', &U::global},              // GLOBAL
      {0x93, &U::stack_global},       // STACK_GLOBAL
      {'q', &U::bin_put},             // BINPUT
      {'r', &U::long_bin_put},        // LONG_BINPUT
      {0x94, &U::memoize},            // MEMOIZE
      {'h', &U::bin_get},             // BINGET
      {'j', &U::long_bin_get},        // LONG_BINGET
      {'Q', &U::bin_pers_id},         // BINPERSID
      {'R', &U::reduce},              // REDUCE
      {'b', &U::build},               // BUILD
  };
  for (const auto& [byte, action] : kActions)
    if (byte == opcode) return action;
  return nullptr;
}

std::vector<PickledTensor> Unpickler::read() {
  constexpr uint8_t kStop = '.';
  for (;;) {
    size_t begin = at_;
    auto byte = take<uint8_t>();
    if (byte == kStop) break;
    Action action = find_action(byte);
    if (!action) refuse_code(fmt::format("the opcode {} at byte {}", refused_opcode(byte), begin));
    (this->*action)();
  }
  Id result = pop();
  if (!stack_.empty()) refuse("more than one object", "one dictionary of tensors");
  return tensors_of(expect(result, Kind::dict, "the object in the file"));
}

void Unpickler::proto() {
  auto version = take<uint8_t>();
  if (version < 2 || version > 5) refuse(fmt::format("pickle protocol {}", version), "2 to 5");
}

void Unpickler::long1() {
  std::string_view raw = take_text(take<uint8_t>());
  uint64_t number = 0;
  if (raw.size() > sizeof number) refuse(fmt::format("an integer of {} bytes", raw.size()), "at most 8 bytes");
  std::memcpy(&number, raw.data(), raw.size());
  // Little-endian two's complement of as many bytes as it takes.
  if (!raw.empty() && raw.size() < sizeof number && (raw.back() & 0x80)) number |= ~uint64_t{0} << (8 * raw.size());
  push_integer(static_cast<int64_t>(number));
}

void Unpickler::global() {
  std::string_view module = take_line();
  push_global(module, take_line());
}

void Unpickler::stack_global() {
  std::vector<Id> names = take_top(2);
  push_global(expect(names[0], Kind::text, "the module of STACK_GLOBAL").text,
              expect(names[1], Kind::text, "the name of STACK_GLOBAL").text);
}

void Unpickler::push_global(std::string_view module, std::string_view name) {
  const TorchGlobal* known = find_torch_global(module, name);
  if (!known) refuse_code(fmt::format("the name {}", shown(fmt::format("{}.{}", module, name))));
  push({.kind = Kind::global, .global = known});
}

// ("storage", its type, its key, its device, its size in elements)
void Unpickler::bin_pers_id() {
  Id id = pop();
  const Object& tuple = expect(id, Kind::tuple, "the name of a storage");
  if (tuple.items.size() != 5) refuse(fmt::format("the name of a storage has {} parts", tuple.items.size()), "five");
  std::vector<Id> parts = tuple.items;
  if (expect(parts[0], Kind::text, "the first part of a storage's name").text != "storage")
    refuse("the name of something else than a storage", "\"storage\" as its first part");
  const TorchGlobal* type = expect(parts[1], Kind::global, "the type of a storage").global;
  bool untyped = type->kind == TorchGlobal::Kind::untyped_storage;
  if (!untyped && type->kind != TorchGlobal::Kind::storage)
    refuse(fmt::format("{} as the type of a storage", type->name), "a storage of torch");
  std::string_view key = expect(parts[2], Kind::text, "the key of a storage").text;
  int64_t bytes = expect(parts[4], Kind::integer, "the size of a storage").number;
  if (bytes < 0 || (!untyped && __builtin_mul_overflow(bytes, bits_of(type->dtype) / 8, &bytes)))
    refuse(fmt::format("storage {} claims {} elements", shown(key), bytes), "a size that a file can have");
  push({.kind = Kind::storage, .number = bytes, .text = key, .global = type});
}

void Unpickler::reduce() {
  std::vector<Id> call = take_top(2);
  const TorchGlobal& function = *expect(call[0], Kind::global, "what REDUCE calls").global;
  std::span<const Id> arguments = expect(call[1], Kind::tuple, "the arguments of REDUCE").items;
  switch (function.kind) {
    case TorchGlobal::Kind::ordered_dict:
      if (!arguments.empty()) refuse("an OrderedDict made of something", "an empty one, which is filled afterwards");
      return push({.kind = Kind::dict});
    case TorchGlobal::Kind::tensor:
    case TorchGlobal::Kind::typed_tensor:
      return make_tensor(function, arguments);
    case TorchGlobal::Kind::parameter:
      return take_parameter(arguments);
    default:
      refuse_code(fmt::format("a call of {}.{}", function.module, function.name));
  }
}

// (storage, offset, shape, strides, requires_grad, hooks), then the dtype where the storage has none, then metadata
void Unpickler::make_tensor(const TorchGlobal& function, std::span<const Id> arguments) {
  bool typed = function.kind == TorchGlobal::Kind::typed_tensor;
  size_t least = typed ? 7 : 6;
  if (arguments.size() != least && arguments.size() != least + 1)
    refuse(fmt::format("{} has {} arguments", function.name, arguments.size()), fmt::format("{}", least));
  const Object& storage = expect(arguments[0], Kind::storage, "the storage of a tensor");
  PickledTensor tensor{.name = {},
                       .dtype = storage.global->dtype,
                       .storage = storage.text,
                       .storage_bytes = storage.number,
                       .shape = {},
                       .strides = {}};
  if (typed) {
    const TorchGlobal* dtype = expect(arguments[6], Kind::global, "the dtype of a tensor").global;
    if (dtype->kind != TorchGlobal::Kind::dtype) refuse(fmt::format("{} as a dtype", dtype->name), "a dtype of torch");
    tensor.dtype = dtype->dtype;
  } else if (storage.global->kind != TorchGlobal::Kind::storage) {
    refuse("a tensor of a storage without a type", "a storage such as FloatStorage");
  }
  tensor.offset = expect(arguments[1], Kind::integer, "the offset of a tensor").number;
  tensor.shape = integers(arguments[2], "the shape of a tensor");
  tensor.strides = integers(arguments[3], "the strides of a tensor");
  if (tensor.shape.size() != tensor.strides.size())
    refuse(fmt::format("a tensor of {} dims and {} strides", tensor.shape.size(), tensor.strides.size()),
           "as many strides as dims");
  push({.kind = Kind::tensor, .number = static_cast<int64_t>(tensors_.size())});
  tensors_.push_back(std::move(tensor));
}

// (tensor, requires_grad, hooks)
void Unpickler::take_parameter(std::span<const Id> arguments) {
  if (arguments.size() != 3) refuse(fmt::format("_rebuild_parameter has {} arguments", arguments.size()), "three");
  expect(arguments[0], Kind::tensor, "the tensor of a parameter");
  stack_.push_back(arguments[0]);
}

// Attributes of a dictionary: the _metadata of a state dict. They are read and left out.
void Unpickler::build() {
  std::vector<Id> both = take_top(2);
  expect(both[0], Kind::dict, "what BUILD changes");
  expect(both[1], Kind::dict, "what BUILD adds");
  stack_.push_back(both[0]);
}

std::string_view Unpickler::take_text(uint64_t size) {
  if (size > bytes_.size() - at_)
    refuse(fmt::format("{} bytes are asked for at byte {}, but {} follow", size, at_, bytes_.size() - at_),
           "a pickle that ends with STOP");
  std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  return text;
}

std::string_view Unpickler::take_line() {
  std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
  size_t end = rest.find('\n');
  if (end == std::string_view::npos) refuse("a name without an end", "a line of text behind GLOBAL");
  at_ += end + 1;
  return rest.substr(0, end);
}

void Unpickler::push(Object object) {
  stack_.push_back(static_cast<Id>(objects_.size()));
  objects_.push_back(std::move(object));
}

void Unpickler::push_remembered(uint32_t index) {
  auto found = memo_.find(index);
  if (found == memo_.end())
    refuse(fmt::format("object {} of the memo is asked for before it is there", index), "one that was stored");
  stack_.push_back(found->second);
}

Id Unpickler::top() {
  if (stack_.empty() || objects_[stack_.back()].kind == Kind::mark)
    refuse("an opcode finds nothing on the stack", "an object for each that is used");
  return stack_.back();
}

Id Unpickler::pop() {
  Id id = top();
  stack_.pop_back();
  return id;
}

std::vector<Id> Unpickler::take_top(size_t count) {
  std::vector<Id> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}

std::vector<Id> Unpickler::take_to_mark() {
  size_t begin = stack_.size();
  while (begin > 0 && objects_[stack_[begin - 1]].kind != Kind::mark) --begin;
  if (begin == 0) refuse("an opcode finds no mark on the stack", "a MARK before it");
  std::vector<Id> items(stack_.begin() + static_cast<ptrdiff_t>(begin), stack_.end());
  stack_.resize(begin - 1);
  return items;
}

void Unpickler::set_items_of(const std::vector<Id>& items) {
  Id dict = top();
  expect(dict, Kind::dict, "what SETITEMS changes");
  if (items.size() % 2 != 0) refuse("a key without a value", "keys and values in turn");
  std::vector<Id>& into = objects_[dict].items;
  into.insert(into.end(), items.begin(), items.end());
}

const Object& Unpickler::expect(Id id, Kind kind, std::string_view what) {
  const Object& object = objects_[id];
  if (object.kind != kind) refuse(fmt::format("{} is {}", what, name_of(object.kind)), std::string(name_of(kind)));
  return object;
}

std::vector<int64_t> Unpickler::integers(Id id, std::string_view what) {
  const std::vector<Id>& items = expect(id, Kind::tuple, what).items;
  if (items.size() > kMaxTensorRank)
    refuse(fmt::format("{} has {} numbers", what, items.size()), fmt::format("at most {}", kMaxTensorRank));
  std::vector<int64_t> numbers;
  for (Id item : items) numbers.push_back(expect(item, Kind::integer, what).number);
  return numbers;
}

std::vector<PickledTensor> Unpickler::tensors_of(const Object& dict) {
  std::vector<PickledTensor> found;
  std::set<std::string_view> names;
  for (size_t i = 0; i < dict.items.size(); i += 2) {
    std::string_view name = expect(dict.items[i], Kind::text, "a name in the dictionary").text;
    if (!names.insert(name).second) refuse(fmt::format("tensor {} is there twice", shown(name)), "each name once");
    const Object& value = objects_[dict.items[i + 1]];
    if (value.kind != Kind::tensor)
      refuse(fmt::format("{} is {}", shown(name), name_of(value.kind)),
             "a dictionary of tensors: the state_dict of a model");
    found.push_back(tensors_[static_cast<size_t>(value.number)]);
    found.back().name = name;
  }
  return found;
}

void Unpickler::refuse(std::string got, std::string expected) const {
  throw UserError({.place = std::string(place_),
                   .got = std::move(got),
                   .expected = std::move(expected),
                   .hint = std::string(how_to_convert())});
}

void Unpickler::refuse_code(std::string got) const {
  throw UserError({.place = std::string(place_),
                   .got = fmt::format("{}, with which a pickle could run code", got),
                   .expected = "nothing but a dictionary of tensors",
                   .hint = std::string(how_to_convert())});
}

}  // namespace

std::vector<PickledTensor> parse_torch_pickle(std::string_view place, std::span<const std::byte> pickle) {
  if (std::ssize(pickle) > kMaxTorchPickle)
    throw UserError({.place = std::string(place),
                     .got = fmt::format("a pickle of {} bytes", pickle.size()),
                     .expected = fmt::format("at most {}", kMaxTorchPickle),
                     .hint = std::string(how_to_convert())});
  return Unpickler(place, pickle).read();
}

std::string_view how_to_convert() {
  return "if you trust the file, convert it once in Python: "
         "AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW_DIR) writes model.safetensors";
}

}  // namespace sextant
