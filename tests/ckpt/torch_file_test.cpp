// Files of torch.save: those that PyTorch made, read as it reads them, and hostile ones, refused before anything is
// made of them.
#include "ckpt/torch_file.h"

#include "base/files.h"
#include "checkout.h"
#include "ckpt/convert.h"
#include "ckpt/safetensors.h"
#include "ckpt/torch_pickle.h"
#include "ckpt/weights_reader.h"
#include "scratch.h"
#include "zip_builder.h"

namespace sextant {
namespace {

const std::filesystem::path kFixtures = std::string(checkout::kSources) + "/tests/fixtures/torch";

using namespace std::string_literals;

void expect_same(const TensorView& ours, const TensorView& truth) {
  EXPECT_EQ(ours.dtype, truth.dtype) << ours.place;
  EXPECT_EQ(ours.shape, truth.shape) << ours.place;
  EXPECT_TRUE(std::ranges::equal(ours.bytes, truth.bytes)) << ours.place;
}

TEST(TorchFile, HoldsWhatPyTorchReads) {
  SafetensorsFile truth(kFixtures / "tensors.safetensors");
  for (const char* name : {"tensors.bin", "protocol4.bin"}) {
    TorchFile file(kFixtures / name);
    EXPECT_EQ(file.names().size(), truth.names().size());
    for (const std::string& tensor : truth.names()) expect_same(file.tensor(tensor), truth.tensor(tensor));
    EXPECT_FALSE(file.contains("ghost"));
    EXPECT_IN("there is no tensor \"ghost\"", message_of<UserError>([&] { file.tensor("ghost"); }));
  }
}

TEST(TorchFile, TensorsInRowMajorOrderAreNotCopied) {
  TorchFile file(kFixtures / "tensors.bin");
  const std::byte* base = file.tensor("base").bytes.data();
  EXPECT_EQ(file.tensor("tied").bytes.data(), base);
  EXPECT_EQ(file.tensor("rows").bytes.data(), base + 2 * 10 * 4);
  // A copy is made once.
  EXPECT_NE(file.tensor("transposed").bytes.data(), base);
  EXPECT_EQ(file.tensor("transposed").bytes.data(), file.tensor("transposed").bytes.data());
}

TEST(TorchFile, ChecksumsAreNotNeeded) {
  EXPECT_EQ(TorchFile(kFixtures / "no_crc.bin").tensor("w").shape, (GlobalShape{4}));
}

TEST(TorchFile, SaysWhatAFileIsInstead) {
  auto complaint = [](const std::filesystem::path& file) {
    return message_of<UserError>([&] { TorchFile opened(file); });
  };
  std::string legacy = complaint(kFixtures / "legacy.bin");
  EXPECT_IN("in the format of PyTorch before 1.6", legacy);
  EXPECT_IN("save_pretrained(NEW_DIR) writes model.safetensors", legacy);
  EXPECT_IN("1000000 elements in 1 places: an expanded tensor", complaint(kFixtures / "expanded.bin"));
  EXPECT_IN("not a zip archive", complaint(kFixtures / "tensors.safetensors"));
}

TEST(TorchFile, TypesThatAreNoNumbersAreRefusedWhenTheyAreLoaded) {
  TorchFile file(kFixtures / "float8.bin");
  std::vector<float> values(4);
  std::string message = message_of<UserError>([&] { load_rows(file.tensor("w"), {0, 4}, Transpose::no, values); });
  EXPECT_IN("F8_E4M3 cannot be loaded", message);
  EXPECT_IN("quantized weights are not supported", message);
}

using TorchDirectory = Scratch;

TEST_F(TorchDirectory, GivesTheSameTensorsAsSafetensors) {
  for (const char* model : {"gpt2", "llama"}) {
    std::filesystem::path copy = root / model;
    std::filesystem::copy(kFixtures / model, copy);
    std::filesystem::remove(copy / "model.safetensors");
    WeightsReader ours(copy), truth(kFixtures / model);
    EXPECT_EQ(truth.file_count(), 1u);  // safetensors come first
    EXPECT_EQ(ours.file_count(), model == "llama"s ? 2u : 1u);
    for (const std::string& name : truth.names()) {
      std::string bare = model == "gpt2"s ? name.substr(std::string_view("transformer.").size()) : name;
      expect_same(ours.tensor(bare), truth.tensor(name));
    }
  }
}

// A pickle of one tensor, of which a test changes a part.
std::string text(std::string_view s) {
  return "X" + ZipBuilder::le(static_cast<uint32_t>(s.size())) + std::string(s);
}
std::string integer(int32_t n) {
  return "J" + ZipBuilder::le(n);
}
std::string big(int64_t n) {
  return "\x8a\x08" + ZipBuilder::le(n);
}
std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
const std::string kRebuild = global("torch._utils", "_rebuild_tensor_v2");
const std::string kEmptyDict = global("collections", "OrderedDict") + ")R";

struct Tensor {
  std::string storage_type = global("torch", "FloatStorage");
  std::string numel = integer(6);
  std::string offset = integer(0);
  std::string shape = integer(2) + integer(3) + "\x86";
  std::string strides = integer(3) + integer(1) + "\x86";
  std::string pickled() const {
    return kRebuild + "((" + text("storage") + storage_type + text("0") + text("cpu") + numel + "tQ" + offset + shape +
           strides + "\x89" + kEmptyDict + "tR";
  }
};

std::string dict_of(const std::string& name, const std::string& value) {
  return "\x80\x02}(" + text(name) + value + "u.";
}

std::string file_of(const std::string& pickle) {
  return ZipBuilder{{{"m/data.pkl", pickle}, {"m/byteorder", "little"}, {"m/data/0", std::string(24, 'x')}}}.build();
}

std::string complaint_about_file(const std::string& file) {
  return message_of<UserError>([&] { parse_torch_file("f", std::as_bytes(std::span(file))); });
}
std::string complaint(const std::string& pickle) {
  return complaint_about_file(file_of(pickle));
}

TEST(TorchPickle, AcceptsTheTensorThatTheOthersAreMadeOf) {
  std::string file = file_of(dict_of("w", Tensor{}.pickled()));
  std::vector<TorchTensor> tensors = parse_torch_file("f", std::as_bytes(std::span(file)));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].shape, (GlobalShape{2, 3}));
}

TEST(TorchPickle, RefusesWhatCouldRunCode) {
  auto refused = [](const std::string& what, const std::string& pickle) {
    std::string message = complaint(pickle);
    EXPECT_IN(what, message);
    EXPECT_IN("could run code", message);
    EXPECT_IN("save_pretrained(NEW_DIR)", message);
  };
  std::string command = text("touch /tmp/sextant-must-not-exist");
  refused("the name \"os.system\"", "\x80\x02" + global("os", "system") + "(" + command + "tR.");
  refused("the name \"posix.system\"", "\x80\x02" + global("posix", "system") + command + "\x85R.");
  refused("the name \"builtins.eval\"", "\x80\x02" + global("builtins", "eval") + "(" + text("1+1") + "tR.");
  refused("the name \"__builtin__.getattr\"", dict_of("w", global("__builtin__", "getattr")));
  refused("the name \"torch.storage._load_from_bytes\"",
          dict_of("w", global("torch.storage", "_load_from_bytes") + "(" + text("x") + "tR"));
  // Two ways to a name with dots, by which attributes are reached.
  refused("the name \"torch._utils.os.system\"", "\x80\x02" + global("torch._utils", "os.system") + ".");
  refused("the name \"collections.OrderedDict.__init__.__globals__\"",
          "\x80\x04" + text("collections") + text("OrderedDict.__init__.__globals__") + "\x93.");
  refused("the name \"os.system\"",
          "\x80\x04\x95" + ZipBuilder::le<uint64_t>(30) + "\x8c\x02os\x94\x8c\x06system\x94\x93.");
  // Inside what looks like a tensor.
  refused("the name \"subprocess.Popen\"",
          dict_of("w", kRebuild + "(" + global("subprocess", "Popen") + text("sh") + "\x85R" + "tR"));
  refused("the opcode INST", "\x80\x02(" + command + "ios\nsystem\n.");
  refused("the opcode OBJ", "\x80\x02(" + global("collections", "OrderedDict") + "o.");
  refused("the opcode NEWOBJ", "\x80\x02" + global("collections", "OrderedDict") + ")\x81.");
  refused("the opcode NEWOBJ_EX", "\x80\x04" + global("collections", "OrderedDict") + ")}\x92.");
  refused("the opcode PERSID", "\x80\x02Pos.system\n.");
  refused("the opcode EXT1", "\x80\x02\x82\x01.");
  refused("the opcode EXT4", "\x80\x02\x84\x01\x00\x00\x00."s);
  refused("the opcode 0xff", "\x80\x02\xff.");
  // Names that are allowed, called where they are none to call.
  refused("a call of torch.FloatStorage", "\x80\x02" + global("torch", "FloatStorage") + integer(1) + "\x85R.");
}

TEST(TorchPickle, RefusesPersistentIdsOfSomethingElse) {
  std::string type = global("torch", "FloatStorage"), rest = text("0") + text("cpu") + integer(6);
  EXPECT_IN("the name of a storage is None", complaint("\x80\x02NQ."));
  EXPECT_IN("the name of a storage is a string", complaint("\x80\x02" + text("os.system") + "Q."));
  EXPECT_IN("has 0 parts", complaint("\x80\x02)Q."));
  EXPECT_IN("has 4 parts", complaint("\x80\x02(" + text("storage") + type + text("0") + text("cpu") + "tQ."));
  EXPECT_IN("something else than a storage", complaint("\x80\x02(" + text("module") + type + rest + "tQ."));
  EXPECT_IN("the first part of a storage's name is None", complaint("\x80\x02(N" + type + rest + "tQ."));
  EXPECT_IN("the type of a storage is a string", complaint("\x80\x02(" + text("storage") + text("x") + rest + "tQ."));
  EXPECT_IN("the key of a storage is an integer",
            complaint("\x80\x02(" + text("storage") + type + integer(0) + text("cpu") + integer(6) + "tQ."));
  // A storage outside a tensor, and a key that leads out of the archive.
  std::string storage = "(" + text("storage") + type + rest + "tQ";
  EXPECT_IN("\"w\" is a storage", complaint(dict_of("w", storage)));
  std::string outside = "(" + text("storage") + type + text("../../etc/passwd") + text("cpu") + integer(6) + "tQ";
  EXPECT_IN("is not in the archive",
            complaint(dict_of("w", kRebuild + "(" + outside + integer(0) + integer(6) + "\x85" + integer(1) + "\x85" +
                                       "\x89" + kEmptyDict + "tR")));
}

TEST(TorchPickle, NestedNamesDoNotReachBuild) {
  EXPECT_IN("what BUILD changes is a name",
            complaint("\x80\x02" + global("collections", "OrderedDict") + "}" + text("x") + integer(1) + "sb."));
  EXPECT_IN("what BUILD changes is a tensor", complaint(dict_of("w", Tensor{}.pickled() + "}b")));
}

TEST(TorchPickle, RefusesStacksAndMemosThatAreUsedWrongly) {
  EXPECT_IN("object 7 of the memo is asked for before", complaint("\x80\x02h\x07."));
  EXPECT_IN("object 4294967295 of the memo", complaint("\x80\x02j\xff\xff\xff\xff."));
  EXPECT_IN("nothing on the stack", complaint("\x80\x02."));
  EXPECT_IN("nothing on the stack", complaint("\x80\x02(."));
  EXPECT_IN("nothing on the stack", complaint("\x80\x02q\x01"s + "."));
  EXPECT_IN("nothing on the stack", complaint("\x80\x02R."));
  EXPECT_IN("no mark on the stack", complaint("\x80\x02Nt."));
  EXPECT_IN("more than one object", complaint("\x80\x02NN."));
  EXPECT_IN("a key without a value", complaint("\x80\x02}(Nu."));
  EXPECT_IN("the object in the file is None", complaint("\x80\x02N."));
  EXPECT_IN("what REDUCE calls is None", complaint("\x80\x02N)R."));
  EXPECT_IN("pickle protocol 9", complaint("\x80\x09."));
  EXPECT_IN("a pickle that ends with STOP", complaint("\x80\x02}"));
  EXPECT_IN("a name without an end", complaint("\x80\x02"
                                               "cos"));
}

TEST(TorchPickle, RefusesHugeLengths) {
  EXPECT_IN("4294967295 bytes are asked for", complaint("\x80\x02X\xff\xff\xff\xff"
                                                        "abc."));
  EXPECT_IN("an integer of 200 bytes", complaint("\x80\x02\x8a\xc8" + std::string(200, '\xff') + "."));
  EXPECT_IN("at most 8388608", message_of<UserError>([&] {
              parse_torch_pickle("p", std::vector<std::byte>(static_cast<size_t>(kMaxTorchPickle) + 1));
            }));
}

TEST(TorchPickle, NestingCostsNoStack) {
  std::string deep = "\x80\x02N";
  for (int i = 0; i < 1'000'000; ++i) deep += "\x85";
  EXPECT_IN("the object in the file is a tuple", complaint(deep + "."));
  // A dictionary that holds itself.
  EXPECT_IN("\"w\" is a dictionary", complaint("\x80\x02}q\x01(" + text("w") + "h\x01u."));
  // Tuples of tuples of one tuple: small in the file, huge when it is written out.
  std::string laughs = "\x80\x02)q"s + '\0';
  for (char i = 0; i < 100; ++i) {
    laughs += "(";
    for (int n = 0; n < 10; ++n) laughs += "h"s + i;
    laughs += "tq"s + static_cast<char>(i + 1);
  }
  EXPECT_IN("more than one object", complaint(laughs + "."));
  // A place in the memo costs nothing but its entry, however high it is.
  std::string high = "\x80\x02}";
  for (int i = 0; i < 1000; ++i) high += "r" + ZipBuilder::le<uint32_t>(0xFFFFFFFFu - static_cast<uint32_t>(i));
  EXPECT_IN("object 5 of the memo", complaint(high + "h\x05."));
}

TEST(TorchPickle, RefusesTensorsOutsideTheirStorage) {
  auto of = [](const Tensor& tensor) { return complaint(dict_of("w", tensor.pickled())); };
  EXPECT_EQ(of({}), "");
  EXPECT_IN("6 elements from element 1 of a storage of 6", of({.offset = integer(1)}));
  EXPECT_IN("from element -1", of({.offset = integer(-1)}));
  EXPECT_IN("from element 9223372036854775807", of({.offset = big(INT64_MAX)}));
  EXPECT_IN("has no size", of({.shape = integer(-2) + integer(3) + "\x86"}));
  EXPECT_IN("has no size", of({.shape = big(INT64_MAX) + big(INT64_MAX) + "\x86"}));
  EXPECT_IN("has no size", of({.strides = integer(-3) + integer(1) + "\x86"}));
  EXPECT_IN("has no size", of({.strides = big(INT64_MAX) + big(INT64_MAX) + "\x86"}));
  EXPECT_IN("of a storage of 6", of({.strides = integer(4) + integer(1) + "\x86"}));
  EXPECT_IN("an expanded tensor", of({.strides = integer(0) + integer(1) + "\x86"}));
  EXPECT_IN("2 dims and 1 strides", of({.strides = integer(1) + "\x85"}));
  EXPECT_IN("the shape of a tensor is None", of({.shape = "N"}));
  EXPECT_IN("\"data/0\" has 24 bytes; expected 28, by data.pkl", of({.numel = integer(7)}));
  EXPECT_IN("elements; expected a size that a file can have", of({.numel = big(INT64_MAX)}));
  EXPECT_IN("elements; expected a size that a file can have", of({.numel = integer(-1)}));
  EXPECT_IN("FloatTensor", of({.storage_type = global("torch", "FloatTensor")}));
  EXPECT_IN("QInt8Storage", of({.storage_type = global("torch", "QInt8Storage")}));
  EXPECT_IN("OrderedDict as the type of a storage", of({.storage_type = global("collections", "OrderedDict")}));
  EXPECT_IN("a storage without a type",
            of({.storage_type = global("torch.storage", "UntypedStorage"), .numel = integer(24)}));
  // A stride that counts nothing may be anything.
  EXPECT_EQ(of({.shape = integer(1) + integer(6) + "\x86", .strides = big(INT64_MAX) + integer(1) + "\x86"}), "");
}

TEST(TorchPickle, RefusesDictionariesOfSomethingElse) {
  std::string tensor = Tensor{}.pickled();
  EXPECT_IN("tensor \"w\" is there twice", complaint("\x80\x02}(" + text("w") + tensor + text("w") + tensor + "u."));
  EXPECT_IN("\"epoch\" is an integer", complaint(dict_of("epoch", integer(3))));
  EXPECT_IN("\"state_dict\" is a dictionary; expected a dictionary of tensors", complaint(dict_of("state_dict", "}")));
  EXPECT_IN("a name in the dictionary is an integer", complaint("\x80\x02}(" + integer(1) + tensor + "u."));
}

TEST(TorchFile, RefusesArchivesOfSomethingElse) {
  std::string pickle = dict_of("w", Tensor{}.pickled());
  ZipBuilder::Entry data{"m/data/0", std::string(24, 'x')};
  EXPECT_IN("without data.pkl", complaint_about_file(ZipBuilder{{data}}.build()));
  EXPECT_IN("more than one data.pkl",
            complaint_about_file(ZipBuilder{{{"m/data.pkl", pickle}, {"n/data.pkl", pickle}, data}}.build()));
  EXPECT_IN("two entries \"data/0\"", complaint_about_file(ZipBuilder{{{"m/data.pkl", pickle}, data, data}}.build()));
  EXPECT_IN("\"data/0\", is not in the archive", complaint_about_file(ZipBuilder{{{"m/data.pkl", pickle}}}.build()));
  EXPECT_IN("byte order \"big\"",
            complaint_about_file(ZipBuilder{{{"m/data.pkl", pickle}, {"m/byteorder", "big"}, data}}.build()));
  EXPECT_IN("Git LFS pointer", complaint_about_file("version https://git-lfs.github.com/spec/v1\n"));
  EXPECT_IN("a pickle, but not one of torch.save", complaint_about_file(pickle));
}

TEST(TorchFile, EveryCutIsRefused) {
  std::string whole = read_file(kFixtures / "no_crc.bin");
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(complaint_about_file(whole.substr(0, size)), "") << size;
}

}  // namespace
}  // namespace sextant
