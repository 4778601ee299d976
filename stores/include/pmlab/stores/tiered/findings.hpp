// What opening finds to be wrong with a store: an error, or, where the store is opened as far as it can be read, a
// list.
#pragma once

#include <pmlab/base/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// Thread safety: none.
class findings {
 public:
  // `tolerates`: the store is opened to be read, whatever is wrong with it.
  explicit findings(bool tolerates) : tolerates_(tolerates) {}

  // The store must not go on with this: throws pmlab::error unless it is only read.
  void refuse(std::string problem, const std::string& remedy) {
    if (!tolerates_) throw error(problem, remedy);
    list_.push_back(std::move(problem));
  }
  // The store goes on, and answers nothing from the part that is named.
  void note(std::string problem) { list_.push_back(std::move(problem)); }

  [[nodiscard]] bool tolerates() const noexcept { return tolerates_; }
  [[nodiscard]] const std::vector<std::string>& list() const noexcept { return list_; }

 private:
  bool tolerates_;
  std::vector<std::string> list_;
};

}  // namespace pmlab::stores::detail::tiered
