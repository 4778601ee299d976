// Sessions of a web site, in a pool of persistent memory: a hash table (CCEH) from a session's name to its data and
// expiry. Every acknowledged change is present after a restart, and after a crash.
//
//   session_store POOL put NAME SECONDS DATA   keeps DATA for so long
//   session_store POOL get NAME                the data, or "none" if there is no such session any more
//   session_store POOL expire                  forgets the sessions that are over
//   session_store POOL                         reads such commands from the standard input, one a line
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/strings/string_index.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using pmlab::media::pmem;
namespace strings = pmlab::strings;

class session_store {
 public:
  explicit session_store(pmem& pool) : sessions_(index::open(pool, "sessions")) {}

  void put(std::string_view name, std::uint64_t seconds, std::string_view data) {
    // One value, so that no crash separates the data from its end.
    const std::uint64_t end = now() + seconds;
    std::string value(sizeof end, '\0');
    std::memcpy(value.data(), &end, sizeof end);
    if (sessions_.upsert(name, value.append(data)) == pmlab::indexes::outcome::full)
      throw pmlab::error("the pool is full", "expire sessions, or make a larger pool");
  }

  std::optional<std::string> get(std::string_view name) {
    const std::optional<std::string> value = sessions_.find(name);
    if (!value || end_of(*value) <= now()) return std::nullopt;
    return value->substr(sizeof(std::uint64_t));
  }

  // Returns how many it has forgotten.
  std::size_t expire() {
    std::vector<std::string> over;
    sessions_.for_each([&](std::string_view name, std::string_view value) {
      if (end_of(value) <= now()) over.emplace_back(name);
    });
    for (const std::string& name : over) sessions_.erase(name);
    return over.size();
  }

 private:
  using index = strings::string_index<pmem, pmlab::indexes::cceh<pmem>, strings::blob_values>;

  // Seconds since 1970: a clock that runs while the program does not.
  static std::uint64_t now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(since).count());
  }
  static std::uint64_t end_of(std::string_view value) {
    std::uint64_t end = 0;
    std::memcpy(&end, value.data(), sizeof end);
    return end;
  }

  index sessions_;
};

std::string answer(session_store& sessions, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  std::string name;
  std::string seconds;
  words >> command >> name;
  if (command == "put" && words >> seconds) {
    std::uint64_t count = 0;
    const auto [end, failed] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), count);
    if (failed != std::errc() || *end != '\0' || count > 1'000'000'000)
      throw pmlab::error("'" + seconds + "' is no number of seconds", "write it like 3600");
    std::string data;
    std::getline(words >> std::ws, data);
    sessions.put(name, count, data);
    return "kept";
  }
  if (command == "get" && !name.empty()) return sessions.get(name).value_or("none");
  if (command == "expire" && name.empty()) return "forgot " + std::to_string(sessions.expire());
  throw pmlab::error("'" + line + "' is no command", "write: put NAME SECONDS DATA, get NAME, or expire");
}

int run(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: session_store POOL [put NAME SECONDS DATA | get NAME | expire]\n";
    return 2;
  }
  pmem pool(arguments[1], {.create_bytes = 64 << 20});
  session_store sessions(pool);
  if (count > 2) {
    std::string line = arguments[2];
    for (int i = 3; i < count; ++i) line.append(" ").append(arguments[i]);
    std::cout << answer(sessions, line) << '\n';
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(sessions, line) << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** arguments) try { return run(count, arguments); } catch (const std::exception& e) {
  std::cerr << "session_store: error: " << e.what() << '\n';
  return 1;
}
