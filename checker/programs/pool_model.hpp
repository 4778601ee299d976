// The durable content of a pool file, and the stores since: the states that a crash may leave.
//
// A crash keeps a prefix of each line's stores. One instruction or copy may store to several words of a line: then
// it is torn between any two of them, from either end.
#pragma once

#include "checker/programs/pool_image.hpp"
#include "checker/programs/program_run.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pmlab::programs {

class pool_model {
 public:
  explicit pool_model(const program_run& run);
  pool_model(const pool_model&) = delete;
  pool_model& operator=(const pool_model&) = delete;
  ~pool_model();

  // The content when the pool was mapped.
  void reset();
  // Whether the step makes stores durable, so that fewer states can follow than before it.
  [[nodiscard]] bool makes_durable(const program_run::step& s) const;
  void take(const program_run::step& s);

  struct word_store {
    std::uint64_t at;
    std::uint64_t value;
    const entry* by;
  };
  // The pending stores of a line that a crash keeps: the first `stores`, and the last `tail` words of the next group.
  struct cut {
    std::uint32_t stores = 0;
    std::uint32_t tail = 0;
  };
  struct line {
    std::uint64_t at = 0;
    std::vector<word_store> stores;
    std::uint64_t forgotten = 0;  // stores that have become durable
    std::vector<cut> cuts;        // the last one has all stores
  };
  // In the order of their places. The reference holds until the next step.
  [[nodiscard]] const std::vector<line*>& uncertain();

  using choice = std::vector<std::uint32_t>;  // cut of each uncertain line
  [[nodiscard]] std::uint64_t hash(const choice& c);
  // Throws pmlab::error if there is no room.
  void write(pool_image& to, const choice& c);
  // Stores that the choice loses, in the order of their recording.
  [[nodiscard]] std::vector<word_store> lost(const choice& c);
  // The hash of the content with all stores.
  [[nodiscard]] std::uint64_t hash_of_all();

 private:
  struct flushed {
    std::uint64_t line;
    std::uint64_t stores;  // since the beginning
  };

  void persist(line& l, std::uint64_t until);
  void flush(const entry& e, std::vector<flushed>& into) const;
  void complete(const std::vector<flushed>& of);
  [[nodiscard]] std::uint64_t word_at(std::uint64_t at) const;
  [[nodiscard]] static std::map<std::uint64_t, std::uint64_t> words_of(const line& l, const cut& c);

  const program_run& run_;
  std::uint64_t bytes_;
  std::byte* durable_ = nullptr;
  std::uint64_t hash_ = 0;
  std::set<std::uint64_t> pages_;                          // that may hold data
  std::map<std::uint64_t, line> lines_;                    // that have been stored to
  std::map<std::uint64_t, line*> pending_;                 // those of them with stores that are not durable
  std::map<std::uint16_t, std::vector<flushed>> flushed_;  // by thread
  std::vector<line*> uncertain_;
  bool is_known_ = false;  // `uncertain_`
};

}  // namespace pmlab::programs
