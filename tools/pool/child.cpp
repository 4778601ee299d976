// Work on a pool that may be damaged, in a child process.
#include "tools/pool/child.hpp"
#include <pmlab/base/child_process.hpp>

#include <cstring>

#include <fmt/format.h>

namespace pmlab::pool {

std::string in_child(const std::string& doing, std::chrono::seconds patience,
                     const std::function<std::string()>& work) {
  child_end ended;
  try {
    ended = in_child_process(patience, work);
  } catch (const error& e) {
    throw error(fmt::format("{}: {}", doing, e.what()), {});
  }
  switch (ended.end) {
    case child_end::how::returned: return ended.text;
    case child_end::how::threw: throw error(ended.text, {});
    case child_end::how::late:
      throw damage(fmt::format("{}: timed out after {} s (raise with `pmlab pool check --timeout SECONDS`)", doing,
                               patience.count()));
    case child_end::how::signalled:
      throw damage(fmt::format("{}: the child process was killed by '{}'", doing, ::strsignal(ended.signal)));
    case child_end::how::vanished: break;
  }
  throw damage(doing + ": the child process exited");
}

}  // namespace pmlab::pool
