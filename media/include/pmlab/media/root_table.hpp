// The table that finds an index's root object by name: the same in DRAM and in a pool.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::media {

// One cache line:
//
//   0        8              32               56         64
//   | version | name, 0-padded | layout, 0-padded | word |
//
// `version` != 0 commits the entry: it is stored after name and layout, into the same line, so that no crash shows a
// version beside half a name.
struct alignas(cache_line_bytes) root_entry {
  std::atomic<std::uint64_t> version{0};               // version of the layout; 0: the entry is free
  std::array<std::atomic<std::uint64_t>, 3> name{};    // characters, 0-padded
  std::array<std::atomic<std::uint64_t>, 3> layout{};  // characters, 0-padded
  std::atomic<std::uint64_t> word{0};                  // word of the owner: 0 until it has published its root object
};
static_assert(sizeof(root_entry) == cache_line_bytes);

// A root in the table.
struct root_facts {
  std::string name;           // any bytes, if the medium is corrupted
  std::string layout;         // layout of its index: "cceh"
  std::uint64_t version = 0;  // version of that layout
  bool made = false;          // its index has published a root object
};

// Throws pmlab::error: the root has another layout or version than these.
inline void check_layout(const root_facts& r, std::string_view layout, std::uint64_t version) {
  if (r.layout != layout)
    throw error("'" + r.name + "' is an index of layout " + r.layout + ", not " + std::string(layout),
                "open it as " + r.layout + ", or take another name or pool");
  if (r.version != version)
    throw error("'" + r.name + "' has version " + std::to_string(r.version) + " of layout " + r.layout +
                    ", and this program reads version " + std::to_string(version),
                "open it with the release of pmlab that wrote it and copy the entries over");
}

// The error where all places of the table are taken.
[[nodiscard]] inline error no_room_for_root(std::string_view name) {
  return error("no room for index '" + std::string(name) + "': the pool holds " + std::to_string(root_limit) +
                   " indexes already",
               "use another pool");
}

// Lives in the medium. Calls must be serialized by the medium.
struct root_table {
  std::array<root_entry, root_limit> entries{};  // those in use are the first ones

  // Finds or adds `name`; `persist_entry(entry)` makes an added one durable. Errors: see medium::named_root.
  template <class Persist>
  root find_or_add(std::string_view name, std::string_view layout, std::uint64_t version, Persist&& persist_entry) {
    check_name(name, root_name_limit, "an index");
    check_name(layout, root_name_limit, "a layout");
    if (version == 0)
      throw error("'" + std::string(name) + "' cannot have version 0 of layout " + std::string(layout),
                  "count versions from 1: 0 is that of a free place in the table");
    for (root_entry& e : entries) {
      const std::uint64_t stored = e.version.load(std::memory_order_acquire);
      if (stored == 0) {
        write(e.name, name);
        write(e.layout, layout);
        // (R1) < (R2): one line, name and layout before the version that commits them.
        e.word.store(0, std::memory_order_release);           // (R1)
        e.version.store(version, std::memory_order_release);  // (R2)
        persist_entry(e);
        return {&e.word};
      }
      if (read(e.name) != name) continue;
      check_layout({std::string(name), read(e.layout), stored}, layout, version);
      return {&e.word};
    }
    throw no_room_for_root(name);
  }

  // The roots that are there, in the order in which they were added.
  [[nodiscard]] std::vector<root_facts> all() const {
    std::vector<root_facts> facts;
    for (const root_entry& e : entries)
      if (const std::uint64_t version = e.version.load(std::memory_order_acquire); version != 0)
        facts.push_back({read(e.name), read(e.layout), version, e.word.load(std::memory_order_acquire) != 0});
    return facts;
  }

 private:
  using text = std::array<std::atomic<std::uint64_t>, 3>;

  static void write(text& target, std::string_view value) {
    std::array<char, sizeof(text)> padded{};
    std::copy(value.begin(), value.end(), padded.begin());
    for (std::size_t i = 0; i < target.size(); ++i) {
      std::uint64_t part;
      __builtin_memcpy(&part, padded.data() + 8 * i, 8);
      target[i].store(part, std::memory_order_release);
    }
  }

  static std::string read(const text& source) {
    std::array<char, sizeof(text) + 1> padded{};
    for (std::size_t i = 0; i < source.size(); ++i) {
      const std::uint64_t part = source[i].load(std::memory_order_acquire);
      __builtin_memcpy(padded.data() + 8 * i, &part, 8);
    }
    return std::string(padded.data());
  }
};

}  // namespace pmlab::media
