#include "ckpt/staged_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_name.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// Names that a side directory may contain. Any other entry is not ours.
constexpr std::string_view kStaged = "staged";      // the new directory; after an exchange the old one
constexpr std::string_view kReplaced = "replaced";  // the old directory, moved aside
constexpr std::string_view kRemoved = "removed";    // a directory on its way out

struct SideDirectory {
  fs::path path;   // a temporary name of the place
  fs::path place;  // what it is for
  pid_t process = 0;
};

SideDirectory side_of(const fs::path& place) {
  return {place.parent_path() / temporary_name(place.filename().string()), place, ::getpid()};
}

// The side directory at `path`, if it is one by name and by what it holds.
std::optional<SideDirectory> recognise(const fs::path& path) {
  std::optional<TemporaryName> name = parse_temporary_name(path.filename().string());
  if (!name) return std::nullopt;
  SideDirectory side{path, path.parent_path() / name->final_name, name->process};
  std::error_code error;
  for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string held = entry->path().filename().string();
    if (held != kStaged && held != kReplaced && held != kRemoved) return std::nullopt;
  }
  if (error) return std::nullopt;
  return side;
}

// The lock, or none when another holds it. Locks tell running processes from ended ones even where process numbers are
// reused (as in containers), for the kernel drops them however a process ends. Some network file systems have none:
// there the process number must do.
Descriptor lock_if_abandoned(const SideDirectory& side) {
  Descriptor lock(::open(side.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock.is_open() || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  bool is_held = errno == EWOULDBLOCK;
  bool is_dead = ::kill(side.process, 0) != 0 && errno == ESRCH;
  return is_held || !is_dead ? Descriptor() : std::move(lock);
}

void rename_or_throw(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw_disk_error(to, fmt::format("cannot move {} here", from.string()), errno);
}

// False where another process has put a directory there since it was last looked for.
bool rename_unless_occupied(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  throw_disk_error(to, fmt::format("cannot move {} here", from.string()), errno);
}

// Only "not found" is absence: what cannot be looked at may well be there.
bool is_absent(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::not_found;
}

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

// Empties the side directory. Quiet: what cannot be removed now is a leftover like any other, for the next time.
void settle(const SideDirectory& side) {
  std::error_code error;
  if (!is_absent(side.path / kReplaced) && !is_present(side.place))
    fs::rename(side.path / kReplaced, side.place, error);
  if (!error) fs::remove_all(side.path, error);
}

void recover(const SideDirectory& side) {
  if (Descriptor lock = lock_if_abandoned(side); lock.is_open()) settle(side);
}

std::vector<SideDirectory> sides_in(const fs::path& parent) {
  std::vector<SideDirectory> sides;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (!fs::is_directory(entry->symlink_status(ignored))) continue;
    if (std::optional<SideDirectory> side = recognise(entry->path())) sides.push_back(*side);
  }
  return sides;
}

void recover_place(const fs::path& place) {
  for (const SideDirectory& side : sides_in(place.parent_path()))
    if (side.place == place) recover(side);
}

// Until it is locked, another process may take it for abandoned and remove it: then it is made once more.
Descriptor create_side(const SideDirectory& side) {
  constexpr int kMostAttempts = 100;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (::mkdir(side.path.c_str(), 0777) != 0) throw_disk_error(side.path, "cannot create", errno);
    Descriptor lock(::open(side.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.is_open()) ::flock(lock.get(), LOCK_EX);  // a process that removes it lets go when it is gone
    if (is_present(side.path)) return lock;            // nobody else makes this name
  }
  throw_disk_error(side.path, "is removed by other processes", EBUSY);
}

void flush_tree(const fs::path& directory) {
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    fs::file_status status = entry->symlink_status(error);
    if (error) break;
    if (fs::is_regular_file(status) || fs::is_directory(status)) flush_to_disk(entry->path());
  }
  if (error) throw_disk_error(directory, "cannot flush to disk", error.value());
  flush_to_disk(directory);
}

void replace_by_renames(const SideDirectory& side) {
  rename_or_throw(side.place, side.path / kReplaced);
  try {
    rename_or_throw(side.path / kStaged, side.place);
  } catch (...) {
    rename_or_throw(side.path / kReplaced, side.place);
    throw;
  }
}

void replace_existing(const SideDirectory& side, Replacing replacing) {
  if (replacing == Replacing::two_renames) return replace_by_renames(side);
  fs::path staged = side.path / kStaged;
  if (::renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, side.place.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno == EINVAL || errno == ENOSYS) return replace_by_renames(side);
  throw_disk_error(side.place, "cannot exchange with the new directory", errno);
}

// "a/" names the same directory as "a", but has no file name to put a mark on.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

// Absolute, and without links in all but the last component.
fs::path resolved(const fs::path& place) {
  std::error_code error;
  fs::path path = without_slash(fs::absolute(place).lexically_normal());
  fs::path parent = fs::weakly_canonical(path.parent_path(), error);
  if (error) throw_disk_error(place, "cannot be reached", error.value());
  return parent / path.filename();
}

void check_place(const fs::path& place, Existing existing) {
  if (!is_present(place)) return;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(place, error)))
    throw UserError({.place = place.string(),
                     .got = "this is a symbolic link",
                     .expected = "a directory, or a new name",
                     .hint = "remove the link; what it points to is left as it is"});
  if (!fs::is_directory(place, error))
    throw UserError({.place = place.string(), .got = "this is a file", .expected = "a directory, or a new name"});
  if (existing == Existing::refuse && !fs::is_empty(place, error))
    throw UserError({.place = place.string(),
                     .got = "this directory holds files already",
                     .expected = "an empty directory, or a new name"});
}

}  // namespace

StagedDirectory::StagedDirectory(const fs::path& final_place, Existing existing) : final_(resolved(final_place)) {
  std::error_code error;
  fs::create_directories(final_.parent_path(), error);
  if (error) throw_disk_error(final_.parent_path(), "cannot create", error.value());
  recover_place(final_);
  check_place(final_, existing);
  SideDirectory side = side_of(final_);
  lock_ = create_side(side);
  side_ = side.path;
  staged_ = side_ / kStaged;
  if (::mkdir(staged_.c_str(), 0777) == 0) return;
  int why = errno;
  settle(side);
  throw_disk_error(staged_, "cannot create", why);
}

StagedDirectory::~StagedDirectory() {
  settle({side_, final_});
}

void StagedDirectory::commit(Replacing replacing) {
  BUG_IF(committed_, "{} committed twice", final_.string());
  flush_tree(staged_);
  SideDirectory side{side_, final_};
  if (is_present(final_) || !rename_unless_occupied(staged_, final_)) replace_existing(side, replacing);
  committed_ = true;
  flush_to_disk(side_);
  flush_to_disk(final_.parent_path());
  settle(side);
}

void recover_directory(const fs::path& parent) {
  for (const SideDirectory& side : sides_in(parent)) recover(side);
}

void remove_directory(const fs::path& directory) {
  fs::path place = without_slash(fs::absolute(directory));  // of a link, only the link goes
  recover_place(place);
  SideDirectory side = side_of(place);
  Descriptor lock = create_side(side);
  if (::rename(place.c_str(), (side.path / kRemoved).c_str()) != 0) {
    int why = errno;
    settle(side);
    throw_disk_error(place, "cannot remove", why);
  }
  std::error_code error;
  fs::remove_all(side.path, error);
  if (error) throw_disk_error(side.path, "cannot remove", error.value());
}

}  // namespace sextant
