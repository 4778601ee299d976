// A third-party shared library with PiBench's interface, as an index of the benchmark.
#include "bench/catalogue/library_index.hpp"
#include "checker/simulator/simulated_library.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/pibench/library.hpp>
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/subject.hpp"
#if defined(PMLAB_SIMULATED)
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/pool_file.hpp"
#endif

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::bench {
namespace {

namespace fs = std::filesystem;

// State of a library that will be loaded, or is loaded.
struct known_library {
  std::string path;
  std::string name;
  std::optional<pibench::library> loaded;
};

// The descriptions of the registry point into it.
std::deque<known_library>& known_libraries() {
  static std::deque<known_library> libraries;
  return libraries;
}

// ---- where its persistent memory is ----

#if defined(PMLAB_SIMULATED)

constexpr std::size_t page_bytes = 4096;

// A file that reserves its name: the library's mapping of it is a memory of the machine.
class pool_memory {
 public:
  pool_memory(const subject_setup& setup, const std::string& name)
      : memory_((setup.pool_bytes + page_bytes - 1) / page_bytes * page_bytes) {
    memory_.keep_log(false);
    const fs::path folder = fs::canonical(fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp");
    // The path has the same length in every run, so that it takes the same space in the simulated heap.
    path_ = (folder / fmt::format("pmlab-bench-{:010}-{}.pool", ::getpid(), name)).string();
    fs::remove(path_);
    simulator::serve_file(path_, &memory_);
  }
  pool_memory(const pool_memory&) = delete;
  pool_memory& operator=(const pool_memory&) = delete;
  ~pool_memory() {
    simulator::serve_file(path_, nullptr);
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return memory_.bytes(); }
  // Pages that are not all zero: the file's blocks in a file system.
  [[nodiscard]] std::uint64_t used_bytes() const {
    std::uint64_t used = 0;
    std::vector<unsigned char> resident(memory_.bytes() / page_bytes);
    if (::mincore(memory_.start(), memory_.bytes(), resident.data()) != 0) return 0;
    for (std::size_t page = 0; page < resident.size(); ++page) {
      if ((resident[page] & 1U) == 0) continue;
      const std::byte* const start = memory_.start() + page * page_bytes;
      if (std::any_of(start, start + page_bytes, [](std::byte b) { return b != std::byte{0}; })) used += page_bytes;
    }
    return used;
  }

 private:
  simulator::persistent_memory memory_;
  std::string path_;
};

template <class Work>
decltype(auto) unwatched(Work&& work) {
  return simulator::the_machine().quietly(std::forward<Work>(work));
}

#else

// The pool of the medium pmem, or none.
class pool_memory {
 public:
  pool_memory(const subject_setup& setup, const std::string& /*name*/)
      : path_(setup.medium.path), size_(setup.pool_bytes) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t used_bytes() const {
    constexpr std::uint64_t block_bytes = 512;
    struct stat status {};
    if (path_.empty() || ::stat(path_.c_str(), &status) != 0) return 0;
    return static_cast<std::uint64_t>(status.st_blocks) * block_bytes;
  }

 private:
  std::string path_;
  std::uint64_t size_;
};

template <class Work>
decltype(auto) unwatched(Work&& work) {
  return work();
}

#endif

// ---- the library as a subject ----

// Answers like an index of pmlab.
class tree {
 public:
  explicit tree(tree_api& api) : api_(api) {}

  std::optional<indexes::value_type> find(indexes::key_type key) {
    indexes::value_type value = 0;
    if (!api_.find(bytes(key), word_bytes, reinterpret_cast<char*>(&value))) return std::nullopt;
    return value;
  }
  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    if (!api_.insert(bytes(key), word_bytes, bytes(value), word_bytes)) return indexes::outcome::exists;
    ++added_;
    return indexes::outcome::inserted;
  }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    return api_.update(bytes(key), word_bytes, bytes(value), word_bytes) ? indexes::outcome::updated
                                                                         : indexes::outcome::absent;
  }
  indexes::outcome erase(indexes::key_type key) {
    if (!api_.remove(bytes(key), word_bytes)) return indexes::outcome::absent;
    --added_;
    return indexes::outcome::erased;
  }
  std::size_t scan(indexes::key_type key, std::span<indexes::entry> out) {
    char* records = nullptr;
    const int answered = api_.scan(bytes(key), word_bytes, static_cast<int>(out.size()), records);
    const std::size_t entries = answered < 0 ? 0 : std::min(static_cast<std::size_t>(answered), out.size());
    if (entries != 0) std::memcpy(out.data(), records, entries * sizeof(indexes::entry));
    return entries;
  }

  // Entries by which the tree has grown: its interface has no count.
  [[nodiscard]] std::int64_t added() const noexcept { return added_; }

 private:
  static constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  static const char* bytes(const std::uint64_t& word) noexcept { return reinterpret_cast<const char*>(&word); }

  tree_api& api_;
  std::int64_t added_ = 0;
};

// A library may throw anything; it ends the run with a message.
template <class Call>
decltype(auto) blaming(const std::string& path, std::string_view what, Call&& call) {
  try {
    return call();
  } catch (const error&) {
    throw;
  } catch (const std::exception& e) {
    throw error(fmt::format("{}: {} throws: {}", path, what, e.what()), "see the library's own documentation");
  } catch (...) {
    throw error(fmt::format("{}: {} throws something that is no std::exception", path, what),
                "see the library's own documentation");
  }
}

class library_subject final : public subject {
 public:
  library_subject(const known_library& library, const subject_setup& setup)
      : library_(library), setup_(setup), memory_(setup, library.name) {
    open();
  }
  library_subject(const library_subject&) = delete;
  library_subject& operator=(const library_subject&) = delete;
  // The tree is deleted while its memory is mapped.
  ~library_subject() override { api_.reset(); }

  [[nodiscard]] std::string medium() const override { return setup_.medium.text(); }
  [[nodiscard]] bool durable() const override { return setup_.medium.in_pool() || setup_.medium.simulated; }

  work_done run(const work& w) override {
    tree called(*api_);
    return blaming(library_.path, "an operation", [&] {
      const work_done done = execute(called, w, no_hooks{});
      entries_.fetch_add(called.added(), std::memory_order_relaxed);
      return done;
    });
  }

  space_used space() override {
    return unwatched([&]() -> space_used {
      const std::int64_t entries = entries_.load();
      return {entries < 0 ? 0 : static_cast<std::uint64_t>(entries), memory_.used_bytes(), 0};
    });
  }

  std::optional<media::counts> accesses() override { return std::nullopt; }
  void reset_accesses() override {}

  void reopen() override {
    const no_hooks timed;
    timed.begin();
    api_.reset();
    open();
    timed.end();
  }

 private:
  void open() {
    blaming(library_.path, fmt::format("create_tree on medium {}", setup_.medium.text()), [&] {
      tree_options_t options;
      options.pool_path = memory_.path();
      options.pool_size = memory_.size();
      options.num_threads = setup_.threads;
      api_ = library_.loaded->create(options);
    });
  }

  const known_library& library_;
  subject_setup setup_;
  pool_memory memory_;
  std::unique_ptr<tree_api> api_;
  std::atomic<std::int64_t> entries_{0};
};

// ---- naming and checking ----

// libtable.so: table.
std::string name_of(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  std::string name = file.substr(0, file.find(".so"));
  if (name.starts_with("lib")) name.erase(0, 3);
  if (name.empty() || name.find_first_of(", /") != std::string::npos)
    throw error(fmt::format("library {} gives no name for its index", path), "name the file lib(NAME).so");
  return name;
}

void check_fit(const std::string& path, const medium_spec& medium) {
  if (medium.counted || medium.emulated())
    throw error(fmt::format("library {} cannot run on medium {}", path, medium.text()),
                "it calls no medium of pmlab: use dram, pmem:PATH or simulated:PROFILE");
  if (medium.simulated) simulator::check_simulated(path);
  if (!medium.simulated && simulator::reports_its_accesses(path))
    throw error(fmt::format("{} was built for the simulated machine, not for medium {}", path, medium.text()),
                "build it with the compiler itself, or use --medium simulated:PROFILE");
}

}  // namespace

const index_description& register_library(const std::string& path, const medium_spec& medium,
                                          const library_options& options) {
  check_fit(path, medium);
  const std::string name = name_of(path);
  for (const index_description* d : all_indexes())
    if (d->name == name)
      throw error(fmt::format("library {} would be index {}, which exists already", path, name),
                  "name the file otherwise");
  known_library& library = known_libraries().emplace_back(known_library{path, name, std::nullopt});

  index_description d;
  d.name = name;
  d.what = "library " + path;
  d.threading = "the library's own affair";
  d.ordered = options.scans;
  d.peer = true;
  // Unknown; pools are sparse files.
  d.pool_bytes_per_entry = 256;
  d.refusal = [scans = options.scans](workload::operation_kind kind, unsigned) -> std::string {
    return kind == workload::operation_kind::scan && !scans
               ? "its order of keys is unknown; --library-scans declares that it is that of integers"
               : "";
  };
  d.make = [&library](const subject_setup& setup) -> std::unique_ptr<subject> {
    return std::make_unique<library_subject>(library, setup);
  };
  const registration registered(std::move(d));
  return find_index(name);
}

void load_libraries() {
  for (known_library& library : known_libraries())
    if (!library.loaded) library.loaded.emplace(library.path);
}

}  // namespace pmlab::bench
