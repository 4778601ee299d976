#include "bench/engine/process_of_its_own.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>

#include <chrono>
#include <future>

namespace pmlab::bench {

std::string in_process_of_its_own(const std::string& what, const std::string& remedy,
                                  const std::function<std::string()>& measure) {
  constexpr std::chrono::hours limit(24 * 30);
  // In a thread: the stack of a process begins where its arguments and its environment end, at any place in a line, and
  // threads that are made see the objects that their maker has there.
  const child_end end = in_child_process(
      limit, [&] { return std::async(std::launch::async, measure).get(); }, child_stderr::kept);
  if (end.end == child_end::how::threw) throw error(end.text, {});
  if (end.end != child_end::how::returned) throw error(what + " " + end.describe(), remedy);
  return end.text;
}

}  // namespace pmlab::bench
