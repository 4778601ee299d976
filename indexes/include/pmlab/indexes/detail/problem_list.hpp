// The problems that a salvage found, in words.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace pmlab::indexes::detail {

// Names the first twenty and counts the others: a tree may be damaged in many places.
class problem_list {
 public:
  void add(const std::string& problem) {
    constexpr std::size_t most = 20;
    if (first_.size() < most) first_.push_back(problem);
    ++count_;
  }

  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }

  // Empty: there was none.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& p : first_) text += (text.empty() ? "" : ", ") + p;
    if (count_ > first_.size()) text += ", and " + std::to_string(count_ - first_.size()) + " more";
    return text;
  }

 private:
  std::vector<std::string> first_;
  std::size_t count_ = 0;
};

}  // namespace pmlab::indexes::detail
