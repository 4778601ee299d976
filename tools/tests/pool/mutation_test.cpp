// Pools with a few damaged bytes in an index: opened with all their entries, or refused; never a fault, a hang, or a
// part of the entries that is reported as sound. Entries that were not overwritten are repaired.
#include "tools/pool/entries.hpp"
#include "tools/pool/inspect.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/tests/pool/pool_indexes.hpp"
#include "support/campaign.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::pool {
namespace {

constexpr std::uint64_t pool_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t inserted = 4400;
constexpr std::uint64_t erased_one_in = 11;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
// Where libpmemobj's own words in front of the heap end, for a pool of this size; then chunks, each of which may begin
// with a header (see indexes/tests/pool_files_test.cpp).
constexpr std::size_t heap_begin = 8192 + 1024 * 3072 + 1024 + 64 + 65528 * 8;
constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
constexpr std::size_t chunk_header_bytes = 384;
constexpr std::size_t root_bytes = 64;

constexpr std::uint64_t key_of(std::uint64_t i) { return (i + 1) * 0x9e37'79b9'7f4a'7c15U; }
constexpr bool is_erased(std::uint64_t i) { return i % erased_one_in == 0; }

using model = std::map<std::uint64_t, std::uint64_t>;

struct subject {
  const char* index;
  // Entries that one damaged place may cost unseen: those of a hash table whose words and links are not distinguished
  // here.
  std::size_t unseen;
  // Entries beyond the overwritten ones that one damaged place may cost a repair, and those that it may bring up though
  // they were erased.
  std::size_t lost;
  std::size_t brought_up;
};
// For gtest.
void PrintTo(const subject& s, std::ostream* out) { *out << s.index; }

class mutated_pools : public testing::TestWithParam<subject> {
 protected:
  mutated_pools() {
    child_process maker = child_process::forked([&] {
      media::pmem pool(path_, {.create_bytes = pool_bytes, .huge_pages = false});
      const auto index = bench::find_index(GetParam().index).open_root(pool, "orders");
      const bool is_tree = std::string(GetParam().index) == "fast_fair";
      constexpr std::uint64_t step = 7919;  // has no factor in common with `inserted`
      for (std::uint64_t n = 0; n < inserted; ++n) {
        const std::uint64_t key = key_of(n * step % inserted);
        static_cast<void>(index->insert(key, is_tree ? key : ~key));
      }
      // Old words of entries that a tree's nodes gave away.
      if (is_tree)
        for (std::uint64_t i = 0; i < inserted; ++i) static_cast<void>(index->update(key_of(i), ~key_of(i)));
      for (std::uint64_t i = 0; i < inserted; ++i)
        if (is_erased(i)) static_cast<void>(index->erase(key_of(i)));
      ::_exit(0);
    });
    if (!maker.wait().is_success()) throw std::runtime_error("no pool was made");
    std::ifstream in(path_, std::ios::binary);
    sound_.assign(std::istreambuf_iterator<char>(in), {});
    for (std::uint64_t i = 0; i < inserted; ++i) {
      patterns_.insert({key_of(i), ~key_of(i)});
      if (!is_erased(i)) model_[key_of(i)] = ~key_of(i);
    }
    // The table of roots is the pool's.
    const std::size_t root = sound_.find(std::string("orders\0", 7));
    for (std::size_t at = heap_begin; at + word_bytes <= sound_.size(); at += word_bytes) {
      const std::uint64_t word = word_at(at);
      if (word == 0 || (at >= root - word_bytes && at < root + root_bytes) ||
          (at - heap_begin) % chunk_bytes < chunk_header_bytes)
        continue;
      words_.push_back(at);
      if (!patterns_.contains(word)) links_.push_back(at);
    }
  }

  [[nodiscard]] std::uint64_t word_at(std::size_t at) const {
    std::uint64_t word = 0;
    std::memcpy(&word, sound_.data() + at, sizeof word);
    return word;
  }

  struct damage_done {
    std::size_t at = 0;
    std::string bytes;
    std::string what;
  };

  // Zeroes a word, or makes it a random one or another link, or overwrites 64 bytes; of any word, or of one that is no
  // key and no value.
  [[nodiscard]] damage_done damage_of(std::uint64_t seed) const {
    std::mt19937_64 source(seed);
    const std::vector<std::size_t>& among = seed % 4 == 3 ? words_ : links_;
    damage_done done;
    done.at = among[source() % among.size()];
    std::uint64_t word = 0;
    switch (seed % 5) {
      case 0:
      case 1: done.what = "a zeroed word"; break;
      case 2:
        done.what = "a random word";
        word = source();
        break;
      case 3:
        done.what = "another link's word";
        word = word_at(links_[source() % links_.size()]);
        break;
      default: done.what = "64 random bytes"; break;
    }
    done.bytes.assign(reinterpret_cast<const char*>(&word), sizeof word);
    if (seed % 5 == 4) {
      done.bytes.clear();
      for (std::size_t i = 0; i < 64 && done.at + i < sound_.size(); ++i)
        done.bytes.push_back(static_cast<char>(source()));
    }
    done.what += " at " + std::to_string(done.at);
    return done;
  }

  void put(std::size_t at, const std::string& bytes) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  // The keys of which a word was overwritten.
  [[nodiscard]] std::set<std::uint64_t> hit_by(const damage_done& done) const {
    std::set<std::uint64_t> keys;
    for (std::size_t at = done.at; at < done.at + done.bytes.size(); at += word_bytes)
      for (const std::uint64_t key : {word_at(at), ~word_at(at)})
        if (model_.contains(key)) keys.insert(key);
    return keys;
  }

  // Opens, checks and walks the index, in a process of its own. "all": every entry that was not hit is present, and no
  // other; "wrong: ..."; or "refused: ...".
  [[nodiscard]] std::string opened(const std::set<std::uint64_t>& hit) const {
    try {
      return look_at(path_, "opening", patience(20), [&](media::pmem& pool) -> std::string {
        std::shared_ptr<erased::any_index> index;
        try {
          index = bench::find_index(GetParam().index).open_root(pool, "orders");
        } catch (const error& e) {
          return std::string("refused: ") + e.what();
        }
        const indexes::check_report report = index->check();
        if (!report.ok()) return "refused: " + report.violations.front();
        model found;
        index->for_each([&](std::uint64_t key, std::uint64_t value) { found[key] = value; });
        std::size_t missing = 0, unknown = 0;
        for (const auto& [key, value] : model_)
          missing += !hit.contains(key) && (index->find(key) != value || !found.contains(key)) ? 1 : 0;
        for (const auto& [key, value] : found) unknown += patterns_.contains(key) && !model_.contains(key) ? 1 : 0;
        if (missing <= GetParam().unseen && unknown == 0) return "all";
        return "wrong: sound, and " + std::to_string(missing) + " entries are missing, " + std::to_string(unknown) +
               " that were erased are present";
      });
    } catch (const error& e) {
      return std::string("wrong: ") + e.what();
    }
  }

  // All operations, many times, on a private copy. "refused": the index does not open; or the number of keys in it that
  // were never there.
  [[nodiscard]] std::string worked_with(media::pmem& pool) const {
    const auto attempt = [](auto&& operation) {
      try {
        operation();
      } catch (const error&) {
      }
    };
    std::shared_ptr<erased::any_index> index;
    try {
      index = bench::find_index(GetParam().index).open_root(pool, "orders");
    } catch (const error&) {
      return "refused";
    }
    std::set<std::uint64_t> unknown;
    const auto see = [&](std::uint64_t key) {
      if (!patterns_.contains(key) && !patterns_.contains(key - 1)) unknown.insert(key);
    };
    const auto read_all = [&] {
      for (std::uint64_t i = 0; i < inserted; ++i) attempt([&] { static_cast<void>(index->find(key_of(i))); });
      attempt([&] { index->for_each([&](std::uint64_t key, std::uint64_t) { see(key); }); });
      std::vector<indexes::entry> some(100);
      for (std::uint64_t part = 0; part < 256; ++part)
        attempt([&] {
          const std::size_t count = index->scan(part << 56, some);
          for (std::size_t i = 0; i < count; ++i) see(some[i].key);
        });
      attempt([&] { static_cast<void>(index->stats()); });
    };
    read_all();
    for (std::uint64_t i = 0; i < inserted; ++i) {
      const std::uint64_t key = key_of(i);
      attempt([&] { static_cast<void>(i % 2 == 0 ? index->erase(key) : index->update(key, ~key)); });
      attempt([&] { static_cast<void>(index->insert(key + 1, key)); });
    }
    for (std::uint64_t i = 0; i < inserted; ++i) attempt([&] { static_cast<void>(index->erase(key_of(i) + 1)); });
    read_all();
    return std::to_string(unknown.size());
  }

  tests::temporary_folder folder_;
  std::string path_ = folder_.file("pool");
  std::string sound_;
  model model_;
  std::set<std::uint64_t> patterns_;  // keys and values, also those that were erased
  std::vector<std::size_t> words_;    // words of the heap that are not 0
  std::vector<std::size_t> links_;    // those of these that are no key and no value
};

TEST_P(mutated_pools, are_whole_or_refused_and_a_repair_brings_back_the_rest) {
  std::size_t refused = 0, beyond_us = 0;
  const std::vector<std::uint64_t> all_seeds = tests::seeds(60);
  for (const std::uint64_t seed : all_seeds) {
    const damage_done done = damage_of(seed);
    const std::set<std::uint64_t> hit = hit_by(done);
    SCOPED_TRACE(done.what + "\nreplay: " + tests::replay_command(seed));
    put(done.at, done.bytes);
    std::optional<contents> all;
    try {
      all = contents_of(path_, patience(20));
    } catch (const error&) {
      ++beyond_us;  // libpmemobj does not open it
    }
    if (all && all->roots.size() == 1) {
      const std::string said = opened(hit);
      EXPECT_FALSE(said.starts_with("wrong")) << said;
      if (said.starts_with("refused")) {
        ++refused;
        const read_entries read = entries_of(*all, all->roots[0], reading::salvaged, patience(20));
        std::size_t back = 0, brought_up = 0;
        for (const indexes::entry& e : read.entries) {
          const auto known = model_.find(e.key);
          if (known == model_.end())
            ++brought_up;
          else
            back += known->second == e.value && !hit.contains(e.key) ? 1 : 0;
        }
        EXPECT_GE(back + GetParam().lost, model_.size() - hit.size()) << said << "\n" << read.problem;
        EXPECT_LE(brought_up, GetParam().brought_up + hit.size() + done.bytes.size() / word_bytes) << said << "\n"
                                                                                                   << read.problem;
        EXPECT_EQ(read.problem.find("was killed by"), std::string::npos) << read.problem;
        EXPECT_EQ(read.problem.find("timed out after"), std::string::npos) << read.problem;
      }
    }
    put(done.at, sound_.substr(done.at, done.bytes.size()));
  }
  EXPECT_LE(beyond_us, 1 + all_seeds.size() / 10);
  std::printf("  %s: %zu of %zu refused, %zu not opened by libpmemobj\n", GetParam().index, refused, all_seeds.size(),
              beyond_us);
}

// An index opens in spite of the damage. Each operation answers, or throws pmlab::error.
TEST_P(mutated_pools, let_no_operation_fault_or_hang) {
  std::size_t at_work = 0, beyond_us = 0;
  const std::vector<std::uint64_t> all_seeds = tests::seeds(60);
  for (const std::uint64_t seed : all_seeds) {
    const damage_done done = damage_of(seed);
    SCOPED_TRACE(done.what + "\nreplay: " + tests::replay_command(seed));
    put(done.at, done.bytes);
    bool is_ours = true;
    try {
      static_cast<void>(contents_of(path_, patience(20)));
    } catch (const error&) {
      ++beyond_us;
      is_ours = false;
    }
    if (is_ours) {
      try {
        const std::string said =
            look_at(path_, "all operations", patience(20), [this](media::pmem& pool) { return worked_with(pool); });
        if (said != "refused") {
          ++at_work;
          EXPECT_LE(std::stoull(said), done.bytes.size() / word_bytes) << "keys that were never there";
        }
      } catch (const error& e) {
        ADD_FAILURE() << e.what();
      }
    }
    put(done.at, sound_.substr(done.at, done.bytes.size()));
  }
  std::printf("  %s: worked with %zu of %zu, %zu not opened by libpmemobj\n", GetParam().index, at_work,
              all_seeds.size(), beyond_us);
}

constexpr auto name_of = [](const auto& one) { return one.param.index; };

// Entries below one slot of a radix tree's root, of 16 or 256. A slot that became empty looks as if it had always been
// so; 64 bytes are parts of up to five slots.
constexpr std::size_t below_a_slot_of_wort = inserted / 16;
constexpr std::size_t below_a_slot_of_woart = inserted / 256 + 1;
constexpr std::size_t below_slots_of_wort = 5 * below_a_slot_of_wort;
constexpr std::size_t below_slots_of_woart = 5 * below_a_slot_of_woart;

// 64 bytes lead to the levels of four shards, or five, of 4,096: an entry each on the average, and three in a few of
// them.
constexpr std::size_t below_shards_of_level_hashing = 5 * 3;

// Indexes that one damaged place may cost an entry. All others lose none. An NV-Tree does not see that an entry
// became an erased one, and loses a leaf of which both words with the upper bits of the keys are overwritten.
const std::vector<subject> forgiven{{"cceh", 8, 8, 0},
                                    {"dash", 8, 8, 0},
                                    {"level_hashing", 8, below_shards_of_level_hashing, 0},
                                    {"fp_tree", 0, 0, 3},
                                    {"nv_tree", 1, 62, 62},
                                    {"wb_tree", 0, 14, 14},
                                    {"wort", below_a_slot_of_wort, below_slots_of_wort, 0},
                                    {"woart", below_a_slot_of_woart, below_slots_of_woart, 0}};

std::vector<subject> subjects() {
  std::vector<subject> all;
  for (const std::string& name : tests::pool_indexes()) {
    const auto found =
        std::find_if(forgiven.begin(), forgiven.end(), [&](const subject& s) { return s.index == name; });
    all.push_back(found != forgiven.end() ? *found : subject{bench::find_index(name).name.c_str(), 0, 0, 0});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(all, mutated_pools, testing::ValuesIn(subjects()), name_of);

// FAST-FAIR by its own words: links and nodes that are lost one at a time. Its nodes (detail/fast_fair_node.hpp) hold
// older values, too, of entries that were moved to another node.
class mutated_trees : public mutated_pools {
 protected:
  static constexpr std::size_t node_words = 64;
  enum word : std::size_t { high_key, sibling, level, first_child, greatest_present, greatest_value, retired, gone };
  static constexpr std::size_t slots = 28;
  static constexpr std::uint64_t greatest = ~std::uint64_t{0};

  mutated_trees() {
    for (std::size_t at = heap_begin / 64 * 64; at + node_words * word_bytes <= sound_.size(); at += 64)
      if (is_node(at)) nodes_.push_back(at);
    std::stable_sort(nodes_.begin(), nodes_.end(),
                     [&](std::size_t a, std::size_t b) { return of(a, level) > of(b, level); });
  }

  [[nodiscard]] std::uint64_t of(std::size_t node, std::size_t number) const {
    return word_at(node + number * word_bytes);
  }
  [[nodiscard]] std::uint64_t key_of_slot(std::size_t node, std::size_t slot) const {
    return of(node, 8 + slot / 4 * 8 + slot % 4);
  }
  [[nodiscard]] static std::size_t value_at(std::size_t node, std::size_t slot) {
    return node + (8 + slot / 4 * 8 + 4 + slot % 4) * word_bytes;
  }

  [[nodiscard]] bool is_node(std::size_t at) const {
    const auto leads_on = [&](std::uint64_t link) {
      return link >= heap_begin && link < sound_.size() && link % 64 == 0;
    };
    const std::uint64_t high = of(at, high_key);
    if (of(at, level) > 3 || of(at, gone) != 0 || of(at, greatest_present) != 0 ||
        !patterns_.contains(key_of_slot(at, 0)))
      return false;
    if (of(at, level) == 0 ? of(at, first_child) != 0 : !leads_on(of(at, first_child))) return false;
    return of(at, sibling) == 0 ? high == greatest : patterns_.contains(high) && leads_on(of(at, sibling));
  }

  // Damages the pool: it is noticed, and a repair brings back every entry that was not hit itself, with its value.
  void expect_all_back(const damage_done& done, bool hits_entries) {
    const std::set<std::uint64_t> hit = hits_entries ? hit_by(done) : std::set<std::uint64_t>();
    SCOPED_TRACE(done.what + " at " + std::to_string(done.at));
    put(done.at, done.bytes);
    EXPECT_TRUE(opened(hit).starts_with("refused"));
    const read_entries read = entries_of(all_, all_.roots[0], reading::salvaged, patience(60));
    EXPECT_NE(read.problem, "");
    std::size_t back = 0, others = 0;
    for (const indexes::entry& e : read.entries) {
      const auto known = model_.find(e.key);
      const bool is_right = known != model_.end() && known->second == e.value;
      (is_right && !hit.contains(e.key) ? back : others) += 1;
    }
    EXPECT_EQ(back, model_.size() - hit.size()) << read.problem;
    EXPECT_LE(others, hit.size()) << read.problem;
    put(done.at, sound_.substr(done.at, done.bytes.size()));
  }
  void expect_all_back_without(std::size_t at, std::size_t bytes, const std::string& what, bool hits_entries = false) {
    expect_all_back({at, std::string(bytes, '\0'), what}, hits_entries);
  }

  const contents all_ = contents_of(path_, patience(60));
  std::vector<std::size_t> nodes_;  // where they begin; those of the highest level first
};

TEST_P(mutated_trees, get_back_what_is_behind_a_lost_or_wrong_link) {
  std::vector<std::size_t> links;
  for (const std::size_t n : nodes_) {
    if (of(n, sibling) != 0) links.push_back(n + sibling * word_bytes);
    if (of(n, level) == 0) continue;
    links.push_back(n + first_child * word_bytes);
    for (std::size_t i = 0; i < slots; ++i) {
      const std::uint64_t next = i + 1 < slots ? key_of_slot(n, i + 1) : of(n, high_key);
      if (key_of_slot(n, i) < of(n, high_key) && key_of_slot(n, i) != next) links.push_back(value_at(n, i));
    }
  }
  ASSERT_GT(links.size(), 300U);
  const std::uint64_t seed = tests::seeds(1).front();
  SCOPED_TRACE("replay: " + tests::replay_command(seed));
  std::mt19937_64 source(seed);
  std::shuffle(links.begin(), links.end(), source);
  for (std::size_t i = 0; i < 30; ++i) {
    expect_all_back_without(links[i], word_bytes, "a lost link");
    std::string other = sound_.substr(links[30 + i], word_bytes);
    if (i < 10 && other != sound_.substr(links[i], word_bytes))
      expect_all_back({links[i], other, "a wrong link"}, false);
  }
}

TEST_P(mutated_trees, get_back_what_is_below_lost_inner_nodes) {
  const std::size_t top = nodes_.front();
  ASSERT_EQ(of(top, level), 2U);
  ASSERT_EQ(of(nodes_[1], level), 1U);
  expect_all_back_without(top, node_words * word_bytes, "a zeroed root");
  expect_all_back_without(top, 64, "a zeroed header of the root");
  expect_all_back_without(top + first_child * word_bytes, word_bytes, "the lost first child of the root");
  expect_all_back_without(value_at(top, 0), word_bytes, "a lost child of the root");
  expect_all_back_without(of(top, first_child), node_words * word_bytes, "the zeroed first child of the root");
  for (std::size_t i = 1; i < nodes_.size() && of(nodes_[i], level) == 1; ++i)
    expect_all_back_without(nodes_[i], node_words * word_bytes, "a zeroed inner node");
}

TEST_P(mutated_trees, get_back_what_is_left_of_a_damaged_leaf) {
  const std::uint64_t seed = tests::seeds(1).front();
  SCOPED_TRACE("replay: " + tests::replay_command(seed));
  std::mt19937_64 source(seed);
  for (int i = 0; i < 5; ++i) {
    const std::size_t leaf = nodes_[nodes_.size() - 1 - source() % 100];
    ASSERT_EQ(of(leaf, level), 0U);
    std::string bytes;
    for (int k = 0; k < 64; ++k) bytes.push_back(static_cast<char>(source()));
    expect_all_back({leaf, bytes, "the header of a leaf"}, false);
    expect_all_back_without(leaf, word_bytes, "the lost high key of a leaf");
    expect_all_back({leaf + 64, bytes, "the first entries of a leaf"}, true);
  }
}

INSTANTIATE_TEST_SUITE_P(all, mutated_trees, testing::Values(subject{"fast_fair", 0, 0, 0}), name_of);

}  // namespace
}  // namespace pmlab::pool
