// pod::shared_tree on one host, and on several views of one DRAM: its answers, and how many lines a search refreshes.
// Caches that are not coherent, deaths and power failures are verified on the simulated machine.
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/wrapper.hpp>
#include <pmlab/pod/refreshed_versions.hpp>
#include <pmlab/pod/shared_tree.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

using indexes::outcome;
constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

// What one host sees of a memory that several share. It counts the lines of nodes that it refreshes.
class host_view {
 public:
  static constexpr bool durable = false;
  static constexpr bool shared_by_hosts = true;
  static constexpr media::optional_parts parts{};

  host_view(media::dram& memory, unsigned host, unsigned hosts) : memory_(memory), host_(host), hosts_(hosts) {}

  class publication : public media::dram::publication {
   public:
    explicit publication(host_view& view) noexcept : media::dram::publication(view.memory_) {}
    [[nodiscard]] void* allocate_coherent(std::size_t bytes, std::size_t alignment) {
      return allocate(bytes, alignment);
    }
  };

  [[nodiscard]] std::string name() const { return "host"; }
  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return memory_.resolve(p);
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return memory_.locate(object);
  }
  void flush(const void* start, std::size_t bytes) noexcept { memory_.flush(start, bytes); }
  void fence() noexcept { memory_.fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { memory_.copy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}
  [[nodiscard]] media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    return memory_.named_root(name, layout, version);
  }
  [[nodiscard]] media::usage used() const { return memory_.used(); }

  [[nodiscard]] unsigned hosts() const noexcept { return hosts_; }
  [[nodiscard]] unsigned host() const noexcept { return host_; }
  [[nodiscard]] bool host_is_alive(unsigned /*host*/) const noexcept { return true; }
  void refresh(const void* /*start*/, std::size_t bytes) noexcept {
    if (bytes > media::cache_line_bytes) node_lines += bytes / media::cache_line_bytes;
  }
  bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                               std::uint64_t desired) noexcept {
    return word.compare_exchange_strong(expected, desired);
  }

  std::atomic<std::uint64_t> node_lines{0};

 private:
  media::dram& memory_;
  unsigned host_;
  unsigned hosts_;
};
static_assert(media::pod_medium<host_view>);

using tree = pod::shared_tree<host_view>;
static_assert(indexes::ordered_index<tree>);
static_assert(tree::shared_by_hosts && tree::survives_power_failure);

// Lines of nodes that `search` refreshes.
template <class Search>
std::uint64_t refreshed_by(host_view& view, Search&& search) {
  const std::uint64_t before = view.node_lines;
  search();
  return view.node_lines - before;
}

TEST(SharedTree, OneHostAnswersAsAMap) {
  media::dram memory;
  auto index = pod::shared_tree<media::dram>::open(memory);
  std::map<std::uint64_t, std::uint64_t> model;
  splitmix64 random(1);
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    const std::uint64_t key = random.one_in(500) ? greatest : random.below(3000);
    const auto there = model.find(key);
    switch (random.below(5)) {
      case 0:
        EXPECT_EQ(index.insert(key, i), there == model.end() ? outcome::inserted : outcome::exists);
        model.try_emplace(key, i);
        break;
      case 1:
        EXPECT_EQ(index.upsert(key, i), there == model.end() ? outcome::inserted : outcome::updated);
        model[key] = i;
        break;
      case 2:
        EXPECT_EQ(index.update(key, i), there == model.end() ? outcome::absent : outcome::updated);
        if (there != model.end()) there->second = i;
        break;
      case 3:
        EXPECT_EQ(index.erase(key), there == model.end() ? outcome::absent : outcome::erased);
        model.erase(key);
        break;
      default: EXPECT_EQ(index.find(key), there == model.end() ? std::nullopt : std::optional(there->second));
    }
  }
  EXPECT_EQ(index.size(), model.size());
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, model.size());
  auto expected = model.begin();
  index.for_each([&](std::uint64_t key, std::uint64_t value) {
    ASSERT_NE(expected, model.end());
    EXPECT_EQ(key, expected->first);
    EXPECT_EQ(value, expected->second);
    ++expected;
  });
  EXPECT_EQ(expected, model.end());
  std::array<indexes::entry, 100> some;
  ASSERT_EQ(index.scan(1000, some), some.size());
  auto from = model.lower_bound(1000);
  for (const indexes::entry& e : some) EXPECT_EQ(e, (indexes::entry{from->first, (from++)->second}));
}

TEST(SharedTree, EachHostSeesWhatTheOthersHaveDone) {
  media::dram memory;
  host_view first(memory, 0, 3), second(memory, 1, 3), third(memory, 2, 3);
  tree a = tree::open(first), b = tree::open(second), c = tree::open(third);
  const std::array<tree*, 3> hosts{&a, &b, &c};
  std::map<std::uint64_t, std::uint64_t> model;
  splitmix64 random(2);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    tree& on = *hosts[random.below(3)];
    const std::uint64_t key = random.below(2000);
    if (random.one_in(4)) {
      EXPECT_EQ(on.erase(key), model.erase(key) != 0 ? outcome::erased : outcome::absent);
    } else {
      EXPECT_EQ(on.upsert(key, i), model.contains(key) ? outcome::updated : outcome::inserted);
      model[key] = i;
    }
    const auto there = model.find(key);
    EXPECT_EQ(hosts[random.below(3)]->find(key), there == model.end() ? std::nullopt : std::optional(there->second));
  }
  for (tree* on : hosts) {
    EXPECT_EQ(on->size(), model.size());
    EXPECT_TRUE(on->check().ok());
    EXPECT_EQ(on->stats().nodes, a.stats().nodes);
  }
}

TEST(SharedTree, ASearchRefreshesNothingIfNothingChanged) {
  media::dram memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  tree writer = tree::open(first), reader = tree::open(second);
  constexpr std::uint64_t keys = 60'000;
  for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(writer.insert(mix_bits(key), key), outcome::inserted);
  constexpr std::uint64_t lines = 8;
  const std::uint64_t levels = reader.stats().depth;
  ASSERT_EQ(levels, 4U);
  const std::uint64_t key = mix_bits(keys / 2);
  // A host that has just joined has seen no node. It begins at the root of the moment.
  host_view third(memory, 1, 2);
  tree joined = tree::open(third);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), keys / 2); }), levels * lines);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), keys / 2); }), 0U);
  ASSERT_EQ(writer.update(key, 1), outcome::updated);
  // The leaf, and none of the nodes above it.
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), 1U); }), lines);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), 1U); }), 0U);
  // A host knows what it has changed itself.
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.update(key, 2), outcome::updated); }), 0U);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), 2U); }), 0U);
}

TEST(SharedTree, ThreadsOfSeveralHostsAddKeysOfTheirOwn) {
  media::dram memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  tree a = tree::open(first), b = tree::open(second);
  constexpr std::uint64_t threads = 4, each = 4000;
  std::vector<std::thread> running;
  for (std::uint64_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      tree& on = t % 2 == 0 ? a : b;
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t key = mix_bits(i * threads + t);
        EXPECT_EQ(on.insert(key, t), outcome::inserted);
        EXPECT_EQ(on.find(key), t);
      }
    });
  for (std::thread& t : running) t.join();
  EXPECT_EQ(a.size(), threads * each);
  EXPECT_EQ(b.size(), threads * each);
  EXPECT_TRUE(a.check().ok());
  EXPECT_TRUE(b.check().ok());
}

TEST(SharedTree, AnotherNumberOfLocksIsRefused) {
  media::dram memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  const tree made = tree::open(first);
  using other = pod::shared_tree<host_view, pod::tree_sizes{.locks = 64, .remembered = 64}>;
  EXPECT_THROW(static_cast<void>(other::open(second)), error);
}

TEST(SharedTree, AFullMemoryChangesNothing) {
  media::dram memory(media::dram_options{.capacity_bytes = std::size_t{1} << 18});
  auto index = pod::shared_tree<media::dram>::open(memory);
  std::uint64_t count = 0;
  while (index.insert(mix_bits(count), count) == outcome::inserted) ++count;
  EXPECT_GT(count, 1000U);
  EXPECT_EQ(index.insert(mix_bits(count), count), outcome::full);
  EXPECT_EQ(index.find(mix_bits(count)), std::nullopt);
  EXPECT_EQ(index.size(), count);
  EXPECT_TRUE(index.check().ok());
}

TEST(RefreshedVersions, ASlotHasOneObjectWithOneVersion) {
  pod::refreshed_versions known(2);
  EXPECT_FALSE(known.has(0, 0));
  known.note(1, 10);
  known.note(2, 20);
  EXPECT_TRUE(known.has(1, 10));
  EXPECT_TRUE(known.has(2, 20));
  EXPECT_FALSE(known.has(1, 20));
  EXPECT_FALSE(known.has(1, 9));
  known.note(3, 10);  // in the slot of 1
  EXPECT_TRUE(known.has(3, 10));
  EXPECT_FALSE(known.has(1, 10));
  known.note(3, 11);
  EXPECT_FALSE(known.has(3, 10));
  EXPECT_TRUE(known.has(2, 20));
}

TEST(SharedTree, TheCheckNamesARootOfNoLevel) {
  media::dram memory;
  auto index = pod::shared_tree<media::dram>::open(memory);
  static_cast<void>(index.insert(1, 2));
  const std::uint64_t head = memory.named_root("shared_tree", "shared_tree", 1).word->load();
  const std::uint64_t root = reinterpret_cast<const std::atomic<std::uint64_t>*>(head)->load();
  reinterpret_cast<indexes::detail::fast_fair::node*>(root)->level.store(std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(index.check().ok());
  EXPECT_THROW(static_cast<void>(index.find(1)), error);
  EXPECT_THROW(static_cast<void>(index.stats()), error);
}

// DRAM, of whose publications one throws.
class throws_once : public media::wrapper<media::dram> {
 public:
  explicit throws_once(std::uint64_t number) : media::wrapper<media::dram>(std::in_place), left_(number) {}

  void flush(const void* start, std::size_t bytes) noexcept { inner().flush(start, bytes); }
  void fence() noexcept { inner().fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { inner().copy(target, source, bytes); }
  void annotate_read(const void* start, std::size_t bytes) noexcept { inner().annotate_read(start, bytes); }

  class publication : public media::dram::publication {
   public:
    explicit publication(throws_once& memory) : media::dram::publication(memory.inner()), memory_(memory) {}
    void commit() {
      if (memory_.left_-- == 0) throw error("the publication fails", "");
      media::dram::publication::commit();
    }

   private:
    throws_once& memory_;
  };

 private:
  std::uint64_t left_;
};

TEST(SharedTree, APublicationThatThrowsLeavesNoLockHeld) {
  // Publications: the tree, the split of the first leaf, a root above the two, and further splits.
  for (std::uint64_t number = 1; number < 6; ++number) {
    throws_once memory(number);
    auto index = pod::shared_tree<throws_once>::open(memory);
    std::uint64_t thrown = 0;
    constexpr std::uint64_t keys = 1000;
    for (std::uint64_t key = 0; key < keys; ++key) try {
        static_cast<void>(index.upsert(key, key));
      } catch (const error&) {
        ++thrown;
        static_cast<void>(index.upsert(key, key));
      }
    EXPECT_EQ(thrown, 1U);
    EXPECT_EQ(index.size(), keys);
    EXPECT_TRUE(index.check().ok());
  }
}

}  // namespace
}  // namespace pmlab::tests
