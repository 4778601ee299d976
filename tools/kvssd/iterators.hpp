// The open iterators of a device, by the handles that a program has.
#pragma once

#include "tools/kvssd/engine.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::kvssd {

// Thread safety: any operation from any thread; calls of one iterator run one after the other.
class iterators {
 public:
  explicit iterators(engine& pairs) : pairs_(pairs) {}

  enum class outcome : std::uint8_t { done, too_many, is_open, absent, no_room };

  // Opens one over the keys of a prefix; `handle` is from 1 on. is_open: there is one of the same prefix and kind.
  [[nodiscard]] outcome open(std::uint8_t space, stores::kv_prefix prefix, bool with_values, std::uint8_t& handle);
  [[nodiscard]] outcome close(std::uint8_t space, std::uint8_t handle);
  void close_all(std::uint8_t space);

  // Fills `out` with as many entries as fit; see kvs_iterator_list.
  struct filled {
    std::uint32_t entries = 0, bytes = 0;
    bool end = false;
  };
  // no_room: `out` is too small for the next entry, which stays the next one. An exception loses no entry: those before
  // it are returned first, and only a damaged one is left out by the next call.
  [[nodiscard]] outcome next(std::uint8_t space, std::uint8_t handle, std::span<std::byte> out, filled& result);

 private:
  struct one {
    one(engine& pairs, std::uint8_t of, stores::kv_prefix keys, bool values)
        : space(of), prefix(keys), with_values(values), walk(pairs.iterate(keys, of)) {}
    std::mutex mutex;
    std::uint8_t space;
    stores::kv_prefix prefix;
    bool with_values;
    engine::iterator walk;
    std::vector<std::string> ahead;  // keys of the walk
    std::size_t returned = 0;        // returned ones of these
    bool is_over = false;            // the walk has no more
  };

  [[nodiscard]] std::shared_ptr<one> find(std::uint8_t space, std::uint8_t handle);
  // Appends the entry of a key to `out` at result.bytes. False: it does not fit.
  [[nodiscard]] bool add(const one& of, const std::string& key, std::span<std::byte> out, filled& result);

  engine& pairs_;
  std::mutex mutex_;
  std::array<std::shared_ptr<one>, engine::most_iterators> open_;
};

}  // namespace pmlab::kvssd
