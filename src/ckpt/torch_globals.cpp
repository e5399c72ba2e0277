#include "ckpt/torch_globals.h"

namespace sextant {

namespace {

using As = TorchGlobal::Kind;

constexpr TorchGlobal kGlobals[] = {
    {"collections", "OrderedDict", As::ordered_dict},
    {"torch._utils", "_rebuild_tensor_v2", As::tensor},
    {"torch._utils", "_rebuild_tensor_v3", As::typed_tensor},
    {"torch._utils", "_rebuild_parameter", As::parameter},
    {"torch", "FloatStorage", As::storage, FileDType::f32},
    {"torch", "DoubleStorage", As::storage, FileDType::f64},
    {"torch", "HalfStorage", As::storage, FileDType::f16},
    {"torch", "BFloat16Storage", As::storage, FileDType::bf16},
    {"torch", "LongStorage", As::storage, FileDType::i64},
    {"torch", "IntStorage", As::storage, FileDType::i32},
    {"torch", "ShortStorage", As::storage, FileDType::i16},
    {"torch", "CharStorage", As::storage, FileDType::i8},
    {"torch", "ByteStorage", As::storage, FileDType::u8},
    {"torch", "BoolStorage", As::storage, FileDType::boolean},
    {"torch.storage", "UntypedStorage", As::untyped_storage},
    // Types without a storage class of their own.
    {"torch", "uint16", As::dtype, FileDType::u16},
    {"torch", "uint32", As::dtype, FileDType::u32},
    {"torch", "uint64", As::dtype, FileDType::u64},
    {"torch", "float8_e4m3fn", As::dtype, FileDType::f8_e4m3},
    {"torch", "float8_e5m2", As::dtype, FileDType::f8_e5m2},
    {"torch", "float8_e4m3fnuz", As::dtype, FileDType::f8_e4m3fnuz},
    {"torch", "float8_e5m2fnuz", As::dtype, FileDType::f8_e5m2fnuz},
    {"torch", "float8_e8m0fnu", As::dtype, FileDType::f8_e8m0},
};

}  // namespace

const TorchGlobal* find_torch_global(std::string_view module, std::string_view name) {
  for (const TorchGlobal& global : kGlobals)
    if (global.module == module && global.name == name) return &global;
  return nullptr;
}

}  // namespace sextant
