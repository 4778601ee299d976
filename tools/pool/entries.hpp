// The entries of one root, as far as they can be read.
#pragma once

#include "tools/pool/inspect.hpp"
#include "tools/pool/strings_root.hpp"
#include <pmlab/indexes/index.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace pmlab::pool {

// Memory that a child process fills and that stays when it dies: untouched pages cost nothing.
class shared_entries {
 public:
  // Throws pmlab::error: the machine does not give so much address space.
  explicit shared_entries(std::uint64_t most);
  shared_entries(const shared_entries&) = delete;
  shared_entries& operator=(const shared_entries&) = delete;
  ~shared_entries();

  // False: it holds `most` entries already.
  bool add(const indexes::entry& e) noexcept;
  [[nodiscard]] std::span<indexes::entry> all() noexcept;

 private:
  std::uint64_t most_;
  std::size_t bytes_;
  std::atomic<std::uint64_t>* count_;  // written after the entry that it counts
  indexes::entry* first_;
};

struct read_entries {
  std::shared_ptr<shared_entries> kept;     // owns what `entries` names
  std::span<const indexes::entry> entries;  // ascending, each key once
  std::string problem;                      // why there may have been more; empty: these are all
  std::uint64_t contradictions = 0;         // keys that occurred twice with different values: the first is kept
  // Entries with string keys, instead of `entries`.
  string_entries texts = {};
  std::string values = {};  // "words" or "blobs"; empty: these are numbers

  [[nodiscard]] std::uint64_t count() const noexcept { return values.empty() ? entries.size() : texts.size(); }
};

// How an index is read: opened, which recovers it first; or by the salvage function that some indexes have for damaged
// data. Others are opened either way.
enum class reading : std::uint8_t { opened, salvaged };

// Walks the index of `from` in a child process. Entries read before an unreadable part are kept. Memory: 16 bytes for
// each entry, or three times the text of string keys, of which either all are read or none. Throws pmlab::error: as
// shared_entries does.
[[nodiscard]] read_entries entries_of(const contents& all, const root& from, reading how,
                                      patience each = default_patience);

}  // namespace pmlab::pool
