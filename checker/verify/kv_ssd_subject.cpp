// A key-value device as a subject: words as keys and, at varied lengths, as values; on a flash that is soon full, so
// that superblocks are collected and used again within a round. Half of the keys are reached through queues, and the
// keys of some hashes have outlying slots.
#include "checker/verify/partly_full.hpp"
#include "checker/verify/register_store.hpp"
#include "checker/verify/small_kv_device.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include <pmlab/stores/kv_ssd/queue.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::verify {
namespace {

// So few hashes that keys share one now and then.
struct few_hashes {
  template <media::medium Medium>
  using index = partly_full<Medium>;

  std::uint64_t operator()(std::uint8_t space, std::string_view key) const noexcept {
    return (stores::detail::kv_ssd::default_hash{}(space, key) % 61 + 1) * golden_ratio;
  }
};

template <class Medium, class Drive>
class kv_ssd {
  using device = stores::kv_device<Medium, Drive, few_hashes>;

 public:
  static constexpr std::string_view layout_name = "kv_ssd";
  static constexpr std::uint64_t layout_version = 1;
  static constexpr bool fills_up = true;
  // 512 bytes are kept whole: a crash tears a record of more than one block. 20 superblocks of two blocks, and a
  // header.
  static constexpr blocks::geometry drive{.blocks = 41, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true};

  kv_ssd(Medium& medium, Drive& flash) : device_(device::open(medium, flash, small_kv_device)) {}

  indexes::outcome insert(std::uint64_t key, std::uint64_t value) {
    return put(key, value, stores::kv_mode::no_overwrite);
  }
  indexes::outcome update(std::uint64_t key, std::uint64_t value) {
    return put(key, value, stores::kv_mode::update_only);
  }
  indexes::outcome upsert(std::uint64_t key, std::uint64_t value) { return put(key, value, stores::kv_mode::post); }
  indexes::outcome erase(std::uint64_t key) {
    const std::string n = name(key);
    bool erased = false;
    if (is_reached_by_queue(key))
      through_queue([&](queue& q) { return q.erase(n, 0); }, [&](const auto& done) { erased = done.found; });
    else
      erased = device_.erase(n);
    return erased ? indexes::outcome::erased : indexes::outcome::absent;
  }
  std::optional<std::uint64_t> find(std::uint64_t key) const {
    if (is_reached_by_queue(key)) {
      std::optional<std::uint64_t> found;
      const std::array keys{key};
      find_together(keys, {&found, 1});
      return found;
    }
    const auto value = device_.get(name(key));
    return value ? std::optional(word_in(*value)) : std::nullopt;
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    find_together(keys, values);
  }

  // By an iterator over all keys.
  template <class Function>
  void for_each(Function&& function) const {
    auto all = device_.iterate();
    for (;;) {
      const std::vector<std::string> keys = all.next(5);
      for (const std::string& k : keys) {
        const std::uint64_t key = word_of(k);
        function(key, find(key).value_or(torn));
      }
      if (keys.size() < 5) return;
    }
  }
  // Beside other operations, which run between its calls, too.
  std::size_t iterate(std::span<std::uint64_t> out) {
    auto all = device_.iterate();
    std::size_t count = 0;
    for (;;) {
      const std::vector<std::string> keys = all.next(3);
      for (const std::string& k : keys) {
        if (count < out.size()) out[count] = word_of(k);
        ++count;
      }
      if (keys.size() < 3) return count;
    }
  }
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t n = 0;
    for_each([&](std::uint64_t, std::uint64_t) { ++n; });
    return n;
  }
  [[nodiscard]] indexes::index_stats stats() const { return {.medium_bytes = device_.stats().medium_bytes}; }
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report = device_.check();
    if (device_.open_iterators() != 0) report.add("an iterator is open that no operation has");
    return report;
  }

 private:
  using queue = stores::kv_queue<device>;

  [[nodiscard]] static bool is_reached_by_queue(std::uint64_t key) noexcept { return mix_bits(key) % 2 == 0; }

  // One operation.
  template <class Start, class Use>
  void through_queue(Start&& start, Use&& use) const {
    queue q(device_, 1);
    std::array<stores::kv_completion, 1> done;
    static_cast<void>(start(q));
    while (q.reap(done, 1) == 0) continue;
    check(done.front());
    use(done.front());
  }
  // Gets that are under way together.
  void find_together(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) const {
    std::vector<std::string> names;
    for (const std::uint64_t key : keys) names.push_back(name(key));
    queue q(device_, 4);  // its end waits for gets, which use the names
    std::array<stores::kv_completion, 4> done;
    for (std::size_t started = 0, ended = 0; ended < keys.size();) {
      while (started < keys.size() && q.get(names[started], started)) ++started;
      const std::size_t count = q.reap(done, 1);
      for (const stores::kv_completion& c : std::span(done).first(count)) {
        check(c);
        values[c.tag] = c.found ? std::optional(word_in(c.value)) : std::nullopt;
      }
      ended += count;
    }
  }
  static void check(const stores::kv_completion& c) {
    if (c.error == std::errc::not_enough_memory) throw std::bad_alloc();
    if (c.error != std::errc{} && c.error != std::errc::no_space_on_device)
      throw error("an operation of a queue failed: " + blocks::describe(c.error), "look at the run");
  }

  // Stands for bytes that are no value, and for a key that an iterator returns though it is absent.
  static constexpr std::uint64_t torn = 0xbadbadbadbadbadb;

  // Big-endian: neighbours are in one bucket. Some are so long that a few of them fill a page of it.
  [[nodiscard]] static std::string name(std::uint64_t key) {
    std::string n(8 + mix_bits(~key) % 3 * 40, 'k');
    for (std::size_t i = 0; i < 8; ++i) n[i] = static_cast<char>(key >> (56 - 8 * i));
    return n;
  }
  [[nodiscard]] static std::uint64_t word_of(const std::string& n) {
    std::uint64_t key = 0;
    for (const char c : n.substr(0, sizeof key)) key = key << 8 | static_cast<std::uint8_t>(c);
    return key;
  }
  // A value of 1 to 24 words, which all depend on the first one.
  [[nodiscard]] static std::vector<std::uint64_t> words_for(std::uint64_t value) {
    std::vector<std::uint64_t> words(value >= first_large_value ? 24 : 1 + mix_bits(value) % 24);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = value + i * golden_ratio;
    return words;
  }
  // Another word than any that was stored, if the bytes are not those of a value.
  [[nodiscard]] static std::uint64_t word_in(std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    if (bytes.size() < sizeof value) return torn;
    std::memcpy(&value, bytes.data(), sizeof value);
    const std::vector<std::uint64_t> right = words_for(value);
    if (bytes.size() != right.size() * sizeof value || std::memcmp(bytes.data(), right.data(), bytes.size()) != 0)
      return torn;
    return value;
  }

  indexes::outcome put(std::uint64_t key, std::uint64_t value, stores::kv_mode mode) {
    const std::vector<std::uint64_t> words = words_for(value);
    const std::string n = name(key);
    const auto bytes = std::as_bytes(std::span(words));
    stores::kv_outcome got{};
    if (is_reached_by_queue(key))
      through_queue([&](queue& q) { return q.put(n, bytes, 0, mode); }, [&](const auto& done) { got = done.outcome; });
    else
      got = device_.put(n, bytes, mode);
    switch (got) {
      case stores::kv_outcome::added: return indexes::outcome::inserted;
      case stores::kv_outcome::replaced: return indexes::outcome::updated;
      case stores::kv_outcome::exists: return indexes::outcome::exists;
      case stores::kv_outcome::absent: return indexes::outcome::absent;
      case stores::kv_outcome::full: break;
    }
    return indexes::outcome::full;
  }

  mutable device device_;  // a search needs a queue of the flash
};

const bool registered = register_store<kv_ssd>();

}  // namespace
}  // namespace pmlab::verify
