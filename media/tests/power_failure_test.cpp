// Files that are made, cut by a power failure at every system call: the calls are recorded, and every content of the
// folder is replayed that a file system may show after the failure.
//
// The model: a name that was made, renamed or removed may be lost, alone or with others, until its folder is synced;
// the size of a file may be lost until the file is synced. Bytes that were stored through a mapping are durable at
// once, as on fsdax, within the size.
#include <pmlab/base/error.hpp>
#include <pmlab/media/pmem.hpp>
#include "bench/support/write_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;

// The content of a file: its pages that are not zero.
struct image {
  std::uint64_t bytes = 0;
  std::map<std::uint64_t, std::string> pages;
  bool operator==(const image&) const = default;
};

constexpr std::size_t page_bytes = 4096;

image image_of(const std::string& path) {
  image content;
  std::ifstream in(path, std::ios::binary);
  std::string page(page_bytes, '\0');
  while (in.read(page.data(), static_cast<std::streamsize>(page_bytes)) || in.gcount() > 0) {
    page.resize(static_cast<std::size_t>(in.gcount()));
    if (page.find_first_not_of('\0') != std::string::npos) content.pages.emplace(content.bytes, page);
    content.bytes += page.size();
  }
  return content;
}

void write_image(const std::string& path, const image& content, std::uint64_t bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const auto& [at, page] : content.pages) {
    out.seekp(static_cast<std::streamoff>(at));
    out << page;
  }
  out.close();
  fs::resize_file(path, bytes);
}

using inode = std::uint64_t;

enum class call { made, renamed, removed, file_synced, folder_synced, acknowledged, ended };

struct event {
  call what;
  std::string name, new_name;  // in the folder
  inode file = 0;
  std::map<inode, image> before;  // the files at the time of the call
};

// The history of one folder, and the states that a power failure may leave.
class history {
 public:
  std::map<std::string, inode> first_names;
  std::map<inode, std::uint64_t> first_sizes;
  std::vector<event> events;

  // As if the calls of this kind had been forgotten.
  [[nodiscard]] history without(call what) const {
    history mutilated = *this;
    std::erase_if(mutilated.events, [what](const event& e) { return e.what == what; });
    return mutilated;
  }

  // Calls check(acknowledged steps, description) for every state of the folder before every call, with the state in the
  // folder `scratch`.
  void replay(const std::string& scratch, const std::function<void(std::size_t, const std::string&)>& check) const {
    std::map<std::string, inode> durable = first_names;
    std::map<inode, std::uint64_t> synced = first_sizes;
    std::vector<const event*> pending;
    std::size_t acknowledged = 0;
    for (std::size_t cut = 0; cut < events.size(); ++cut) {
      std::set<std::map<std::string, inode>> seen;
      for (std::uint64_t kept = 0; kept < std::uint64_t{1} << pending.size(); ++kept) {
        std::map<std::string, inode> names = durable;
        for (std::size_t i = 0; i < pending.size(); ++i)
          if ((kept >> i & 1) != 0) apply(*pending[i], names);
        if (!seen.insert(names).second) continue;
        for (const bool sizes_are_lost : {false, true}) {
          const auto [differs, state] = show(scratch, names, events[cut].before, sizes_are_lost, synced);
          if (sizes_are_lost && !differs) continue;
          check(acknowledged, " (cut before call " + std::to_string(cut) + " of " + std::to_string(events.size()) +
                                  ", there is" + (state.empty() ? " nothing" : state) + ")");
        }
      }
      const event& e = events[cut];
      switch (e.what) {
        case call::made:
        case call::renamed:
        case call::removed: pending.push_back(&e); break;
        case call::file_synced: synced[e.file] = e.before.at(e.file).bytes; break;
        case call::folder_synced:
          for (const event* p : pending) apply(*p, durable);
          pending.clear();
          break;
        case call::acknowledged: ++acknowledged; break;
        case call::ended: break;
      }
    }
  }

 private:
  static void apply(const event& e, std::map<std::string, inode>& names) {
    if (e.what == call::made) {
      names[e.name] = e.file;
      return;
    }
    // The call is of a file: without that file's own name it cannot be there.
    const auto old = names.find(e.name);
    if (old == names.end() || old->second != e.file) return;
    if (e.what == call::renamed) names[e.new_name] = old->second;
    names.erase(e.name);
  }

  // Puts a state into the folder. True: some size is not the true one; and the state in words.
  static std::pair<bool, std::string> show(const std::string& scratch, const std::map<std::string, inode>& names,
                                           const std::map<inode, image>& content, bool sizes_are_lost,
                                           const std::map<inode, std::uint64_t>& synced) {
    fs::remove_all(scratch);
    fs::create_directory(scratch);
    std::pair<bool, std::string> state{false, ""};
    for (const auto& [name, file] : names) {
      const auto found = content.find(file);
      const image& all = found == content.end() ? image{} : found->second;
      std::uint64_t bytes = all.bytes;
      const auto size = synced.find(file);
      if (sizes_are_lost) bytes = size == synced.end() ? 0 : size->second;
      state.first = state.first || bytes != all.bytes;
      write_image((fs::path(scratch) / name).string(), all, bytes);
      state.second += " " + name + " of " + std::to_string(bytes) + " bytes";
    }
    return state;
  }
};

// Records the calls on the files of one folder while it exists.
class recorder {
 public:
  explicit recorder(const std::string& folder) : folder_(folder) {
    for (const fs::directory_entry& e : fs::directory_iterator(folder_)) {
      happened_.first_names[e.path().filename()] = inode_of(e.path());
      happened_.first_sizes[inode_of(e.path())] = e.file_size();
    }
    active = this;
  }
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;
  ~recorder() { active = nullptr; }

  // One more step was reported as durable.
  void acknowledge() { add(call::acknowledged, "", "", 0); }
  // Ends the recording.
  [[nodiscard]] history end() {
    add(call::ended, "", "", 0);
    active = nullptr;
    return std::move(happened_);
  }

  // Called by the functions below, before a call that will succeed.
  void note(call what, const std::string& path, const std::string& new_path = {}) {
    if (fs::path(path).parent_path() == folder_)
      add(what, fs::path(path).filename(), fs::path(new_path).filename(), inode_of(path));
  }
  void note_sync(int file) {
    const std::string path = fs::read_symlink("/proc/self/fd/" + std::to_string(file));
    if (path == folder_)
      add(call::folder_synced, "", "", 0);
    else
      note(call::file_synced, path);
  }

  static std::atomic<recorder*> active;

 private:
  static inode inode_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  }

  void add(call what, const std::string& name, const std::string& new_name, inode file) {
    for (const fs::directory_entry& f : fs::directory_iterator(folder_))
      content_[inode_of(f.path())] = image_of(f.path());
    happened_.events.push_back({what, name, new_name, file, content_});
  }

  fs::path folder_;
  history happened_;
  std::map<inode, image> content_;  // also of files that are gone: their removal may be lost
};

std::atomic<recorder*> recorder::active{nullptr};

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The next sync of a folder fails.
std::atomic<bool> folder_sync_fails{false};

}  // namespace

// These take the place of libc's functions in this program and in the libraries that it loads.
extern "C" int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  recorder* const r = recorder::active;
  const bool makes = r != nullptr && (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  const int file = real<int(const char*, int, ...)>("open")(path, flags, mode);
  if (makes && file >= 0) r->note(call::made, path);
  return file;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (recorder* const r = recorder::active) r->note(call::renamed, from, to);
  return real<int(const char*, const char*)>("rename")(from, to);
}

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (recorder* const r = recorder::active) r->note(call::renamed, from, to);
  return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from, to_folder, to, flags);
}

extern "C" int unlink(const char* path) noexcept {
  if (recorder* const r = recorder::active; r != nullptr && ::access(path, F_OK) == 0) r->note(call::removed, path);
  return real<int(const char*)>("unlink")(path);
}

extern "C" int remove(const char* path) noexcept {
  if (recorder* const r = recorder::active; r != nullptr && ::access(path, F_OK) == 0) r->note(call::removed, path);
  return real<int(const char*)>("remove")(path);
}

extern "C" int fsync(int file) {
  struct stat status {};
  if (folder_sync_fails && ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    folder_sync_fails = false;
    errno = EIO;
    return -1;
  }
  if (recorder* const r = recorder::active) r->note_sync(file);
  return real<int(int)>("fsync")(file);
}

namespace {

using namespace pmlab;

constexpr std::uint64_t small_pool_bytes = media::pmem::least_pool_bytes;

class power_failure : public testing::Test {
 protected:
  power_failure() { fs::create_directory(folder()); }

  [[nodiscard]] std::string folder() const { return scratch_.file("true"); }
  [[nodiscard]] std::string path() const { return folder() + "/pool"; }
  [[nodiscard]] std::string shown() const { return scratch_.file("shown"); }

  // Publishes a number in the pool, and reports it as durable.
  static void publish(media::pmem& medium, std::uint64_t number, recorder& calls) {
    const media::root root = medium.named_root("a", "tree", 1);
    media::pmem::publication change(medium);
    change.store(*root.word, number);
    change.commit();
    calls.acknowledge();
  }

  // The first state of which opening the pool, or making one, loses an acknowledged number; empty: there is none.
  [[nodiscard]] std::string loss_of_pool(const history& happened) const {
    std::string loss;
    happened.replay(shown(), [&](std::size_t acknowledged, const std::string& state) {
      if (!loss.empty()) return;
      try {
        media::pmem medium(shown() + "/pool", {.create_bytes = small_pool_bytes});
        const std::uint64_t found = medium.named_root("a", "tree", 1).word->load();
        if (found != acknowledged && found != acknowledged + 1)
          loss = std::to_string(found) + " instead of " + std::to_string(acknowledged) + state;
      } catch (const error& e) {
        loss = e.what() + state;
      }
    });
    return loss;
  }

  // The first state in which the file has neither the old text nor the new one, or the old one after the
  // acknowledgement.
  [[nodiscard]] std::string loss_of_text(const history& happened) const {
    std::string loss;
    happened.replay(shown(), [&](std::size_t acknowledged, const std::string& state) {
      std::ifstream in(shown() + "/text", std::ios::binary);
      const std::string found{std::istreambuf_iterator<char>(in), {}};
      if (loss.empty() && found != "new" && (found != "old" || acknowledged != 0)) loss = "'" + found + "'" + state;
    });
    return loss;
  }

  tests::temporary_folder scratch_;
};

TEST_F(power_failure, A1_at_any_call_takes_nothing_of_a_new_pool) {
  std::ofstream(path() + ".unfinished") << "what a crash left";
  recorder calls(folder());
  {
    media::pmem medium(path(), {.create_bytes = small_pool_bytes});
    publish(medium, 1, calls);
    publish(medium, 2, calls);
  }
  const history happened = calls.end();
  EXPECT_EQ(loss_of_pool(happened), "");
  // The replay detects the loss of a forgotten sync.
  EXPECT_NE(loss_of_pool(happened.without(call::file_synced)), "");
  EXPECT_NE(loss_of_pool(happened.without(call::folder_synced)), "");
}

// Its maker has died between the rename and the sync of the folder: who opens it next syncs its name.
TEST_F(power_failure, A1_takes_nothing_of_a_pool_whose_name_its_maker_did_not_sync) {
  recorder calls(folder());
  folder_sync_fails = true;
  EXPECT_THROW(media::pmem(path(), {.create_bytes = small_pool_bytes}), error);
  EXPECT_FALSE(folder_sync_fails);
  {
    media::pmem medium(path());
    publish(medium, 1, calls);
  }
  EXPECT_EQ(loss_of_pool(calls.end()), "");
}

// The link is in another folder.
TEST_F(power_failure, A1_takes_nothing_of_such_a_pool_that_is_opened_by_a_link) {
  recorder calls(folder());
  folder_sync_fails = true;
  EXPECT_THROW(media::pmem(path(), {.create_bytes = small_pool_bytes}), error);
  const std::string link = scratch_.file("link");
  fs::create_symlink(path(), link);
  {
    media::pmem medium(link);
    publish(medium, 1, calls);
  }
  EXPECT_EQ(loss_of_pool(calls.end()), "");
}

TEST_F(power_failure, A1_at_any_call_leaves_a_file_with_the_old_text_or_the_new_one) {
  std::ofstream(folder() + "/text") << "old";
  recorder calls(folder());
  write_file(folder() + "/text", "new");
  calls.acknowledge();
  const history happened = calls.end();
  EXPECT_EQ(loss_of_text(happened), "");
  EXPECT_NE(loss_of_text(happened.without(call::file_synced)), "");
  EXPECT_NE(loss_of_text(happened.without(call::folder_synced)), "");
}

}  // namespace
