// All claims about memory, and the cases that several of them use.
#include "claims/memory.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

// M2 before M10.
int number_of(const claim& c) { return std::stoi(c.id.substr(1)); }

std::vector<claim> sorted_claims() {
  std::vector<claim> all;
  for (auto* const topic :
       {latency_claims, thread_claims, granularity_claims, bandwidth_claims, mixed_claims, comparison_claims}) {
    std::vector<claim> some = topic();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  std::sort(all.begin(), all.end(), [](const claim& a, const claim& b) { return number_of(a) < number_of(b); });
  return all;
}

}  // namespace

const std::vector<claim>& memory_claims() {
  static const std::vector<claim> all = sorted_claims();
  return all;
}

namespace detail {

std::string readable_size(std::string_view bytes) {
  const char last = bytes.back();
  return last == 'K' || last == 'M' ? fmt::format("{} {}B", bytes.substr(0, bytes.size() - 1), last)
                                    : fmt::format("{} B", bytes);
}

quantity read_latency(std::string_view pattern, std::string_view bytes) {
  return measured(fmt::format("read-by-size/pattern={}/access_bytes={}", pattern, bytes));
}

quantity write_latency(std::string_view pattern, std::string_view bytes) {
  return measured(fmt::format("write-by-size/pattern={}/access_bytes={}", pattern, bytes));
}

quantity slowed_by_threads(std::string_view side, std::string_view bytes, unsigned threads) {
  const std::string group = fmt::format("{}-by-threads/access_bytes={}/threads=", side, bytes);
  return ratio(measured(group + std::to_string(threads)), measured(group + "1"));
}

quantity load(std::string_view pattern, std::string_view bytes, unsigned threads) {
  return measured(fmt::format("load-by-size/pattern={}/access_bytes={}/threads={}", pattern, bytes, threads));
}

quantity store(std::string_view pattern, std::string_view bytes, unsigned threads) {
  return measured(fmt::format("ntstore-by-size/pattern={}/access_bytes={}/threads={}", pattern, bytes, threads));
}

quantity store_then_fence(std::string_view pattern, std::string_view bytes, unsigned threads) {
  return measured(fmt::format("ntstore-then-fence/pattern={}/access_bytes={}/threads={}", pattern, bytes, threads));
}

quantity share_of_highest(bandwidth kind, std::string_view pattern, std::string_view bytes, unsigned threads,
                          const std::vector<std::string_view>& sizes) {
  std::vector<quantity> all;
  all.reserve(sizes.size());
  for (const std::string_view size : sizes) all.push_back(kind(pattern, size, threads));
  return ratio(kind(pattern, bytes, threads), highest(std::move(all)));
}

}  // namespace detail
}  // namespace pmlab::claims
