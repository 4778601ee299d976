// The level-1 index of a chunk store, chosen at run time: from chunks to records, on the medium of the records.
//
// It is behind virtual calls, so that a store is compiled once and not for each index: a few nanoseconds of the
// microsecond that an operation takes.
#pragma once

#include <pmlab/erased/any_index.hpp>
#include "bench/catalogue/media_list.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace pmlab::store_bench {

// Opens `index` as root `name` of the medium. Defined for chosen_medium, and in simulated code for simulated. REQUIRES:
// `index` is one of level1_indexes().
template <class Medium>
[[nodiscard]] std::shared_ptr<erased::any_index> open_level1(std::string_view index, Medium& medium,
                                                             std::string_view name);

// The index that stores which are opened by this thread get, while this lives.
class level1_choice {
 public:
  explicit level1_choice(std::string_view index) : before_(std::exchange(now(), index)) {}
  level1_choice(const level1_choice&) = delete;
  level1_choice& operator=(const level1_choice&) = delete;
  ~level1_choice() { now() = before_; }

  [[nodiscard]] static std::string_view& now() {
    static thread_local std::string_view chosen = "cceh";
    return chosen;
  }

 private:
  std::string_view before_;
};

// As stores::chunk_store takes an index.
template <class Medium>
class level1_index : public erased::attached_index {
 public:
  static level1_index open(Medium& medium, std::string_view name) {
    return level1_index(open_level1(level1_choice::now(), medium, name));
  }

 private:
  explicit level1_index(std::shared_ptr<erased::any_index> opened)
      : erased::attached_index(*opened), opened_(std::move(opened)) {}

  std::shared_ptr<erased::any_index> opened_;
};

}  // namespace pmlab::store_bench
