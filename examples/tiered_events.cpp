// A log of events that an application embeds: appended by many, read in order by topic, over a fast and a large drive.
//
//   tiered_events FAST LARGE append [loss=MS] [pool=FILE]     each line of the input, "TOPIC TEXT", is an event
//   tiered_events FAST LARGE read TOPIC [FROM] [pool=FILE]    events of a topic, in order, from the number FROM on
//   tiered_events FAST LARGE check [pool=FILE]                reads all keys and values
//
// FAST and LARGE are files on two drives, or the drives themselves; files are made if they do not exist. For each event
// a line "TOPIC NUMBER SEQUENCE" is printed when it is acknowledged.
//
// kill -9 at any moment takes no more than the events that were acknowledged in the last MS milliseconds (100 if none
// is given), and always the newest ones. With a pool on persistent memory (or /dev/shm) it takes nothing.
#include <pmlab/blocks/file.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/tiered.hpp>
#include <pmlab/stores/tiered/memory.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using pmlab::error;
namespace blocks = pmlab::blocks;
namespace stores = pmlab::stores;

constexpr std::uint64_t fast_bytes = 128 << 20;
constexpr std::uint64_t large_bytes = 256 << 20;
constexpr std::uint64_t pool_bytes = 64 << 20;

struct request {
  std::string fast, large, command, topic;
  std::uint64_t from = 0;
  std::chrono::milliseconds loss{100};
  std::optional<std::string> pool;
};

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size())
    throw error("'" + std::string(text) + "' is no number", "write it in decimal digits");
  return number;
}

// Big-endian: events of a topic are in the order of their numbers. Topics have no zeros in them.
std::string key_of(std::string_view topic, std::uint64_t number) {
  std::string key(topic);
  key += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift);
  return key;
}
std::uint64_t number_in(const std::string& key) {
  std::uint64_t number = 0;
  for (const char c : key.substr(key.size() - 8)) number = number << 8 | static_cast<std::uint8_t>(c);
  return number;
}

// Under another name until it is complete: a kill may come at any moment.
const std::string& made(const std::string& path, std::uint64_t bytes) {
  if (std::filesystem::exists(path)) return path;
  const std::string incomplete = path + ".new";
  std::filesystem::remove(incomplete);
  blocks::create_file(incomplete, bytes);
  std::filesystem::rename(incomplete, path);
  return path;
}

template <class Store>
class events {
 public:
  explicit events(Store& store) : store_(store), table_(store.table("events")) {}

  void append() {
    for (std::string line; std::getline(std::cin, line);) {
      const std::size_t space = line.find(' ');
      const std::string topic = line.substr(0, space);
      if (topic.empty()) throw error("'" + line + "' has no topic", "write lines like: door opened by Ada");
      const std::string text = space == std::string::npos ? std::string() : line.substr(space + 1);
      const std::uint64_t number = next_of(topic);
      const std::uint64_t sequence = table_.put(key_of(topic, number), text);
      std::cout << topic << ' ' << number << ' ' << sequence << std::endl;
    }
    store_.sync();
  }

  void read(const std::string& topic, std::uint64_t from) {
    const std::string first = key_of(topic, from);
    const std::string end = topic + '\1';
    auto c = table_.cursor({.from = first, .to = std::string_view(end)});
    while (c.next()) std::cout << number_in(c.key()) << ' ' << c.value() << '\n';
  }

  int check() {
    const pmlab::indexes::check_report report = store_.check();
    for (const std::string& problem : report.violations) std::cout << problem << '\n';
    const stores::tiered_stats now = store_.stats();
    std::cout << "sequence " << now.sequence << ", " << now.free_segments << " of " << now.segments
              << " segments free, " << (report.ok() ? "all well" : "damaged") << '\n';
    return report.ok() ? 0 : 1;
  }

 private:
  // One behind the last event of the topic.
  std::uint64_t next_of(const std::string& topic) {
    auto [at, is_new] = next_.try_emplace(topic, 0);
    if (is_new) {
      const std::string end = topic + '\1';
      const std::string first = key_of(topic, 0);
      auto c = table_.cursor({.from = first, .to = std::string_view(end), .way = stores::direction::backward});
      if (c.next()) at->second = number_in(c.key()) + 1;
    }
    return at->second++;
  }

  Store& store_;
  typename Store::table_handle table_;
  std::map<std::string, std::uint64_t> next_;
};

template <class Store>
int perform(Store& store, const request& r) {
  events<Store> all(store);
  if (r.command == "append") all.append();
  if (r.command == "read") all.read(r.topic, r.from);
  return r.command == "check" ? all.check() : 0;
}

int run(const request& r) {
  const bool makes = r.command == "append";
  blocks::file fast(makes ? made(r.fast, fast_bytes) : r.fast);
  blocks::file large(makes ? made(r.large, large_bytes) : r.large);
  stores::tiered_options options;
  options.loss.at_most = r.loss;
  options.memory_limit = 16 << 20;
  options.segment_bytes = 1 << 20;
  options.manifest_bytes = 1 << 20;
  if (!r.pool) {
    const auto store = stores::tiered<blocks::file>::open({.staging = fast, .capacity = large}, options);
    return perform(*store, r);
  }
  using store_on_memory = stores::tiered<blocks::file, blocks::emulated_clock, stores::memtable_on<pmlab::media::pmem>>;
  pmlab::media::pmem pool(*r.pool, {.create_bytes = makes ? pool_bytes : 0});
  const auto store = store_on_memory::open({.staging = fast, .capacity = large, .memory = &pool}, options);
  return perform(*store, r);
}

// The request in these words, or std::nullopt if they are none.
std::optional<request> request_of(std::vector<std::string> words) {
  request r;
  std::erase_if(words, [&](const std::string& word) {
    if (word.starts_with("loss=")) r.loss = std::chrono::milliseconds(number_of(word.substr(5)));
    if (word.starts_with("pool=")) r.pool = word.substr(5);
    return word.starts_with("loss=") || word.starts_with("pool=");
  });
  if (words.size() < 3) return std::nullopt;
  r.fast = words[0];
  r.large = words[1];
  r.command = words[2];
  const bool reads = r.command == "read" && (words.size() == 4 || words.size() == 5);
  if (!reads && !((r.command == "append" || r.command == "check") && words.size() == 3)) return std::nullopt;
  if (reads) r.topic = words[3];
  if (words.size() == 5) r.from = number_of(words[4]);
  return r;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::optional<request> r = request_of({arguments + 1, arguments + count});
    if (r) return run(*r);
    std::cerr << "usage: tiered_events FAST LARGE append | read TOPIC [FROM] | check   [loss=MS] [pool=FILE]\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "tiered_events: error: " << e.what() << '\n';
    return 1;
  }
}
