// Pools with a few damaged bytes in an index: opened with all their entries, or refused; never a fault, a hang, or a part
// of the entries that is called sound. What was not overwritten comes back by a repair.
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/pool/entries.hpp>
#include <pmlab/pool/inspect.hpp>

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
#include <sys/wait.h>
#include <unistd.h>

#include "support/campaign.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::pool {
namespace {

constexpr std::uint64_t pool_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t inserted = 4400;
constexpr std::uint64_t erased_one_in = 11;
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
// Where libpmemobj's own words in front of the heap end, for a pool of this size; then chunks, each of which may begin
// with a header (see tests/indexes/pool_files_test.cpp).
constexpr std::size_t heap_begin = 8192 + 1024 * 3072 + 1024 + 64 + 65528 * 8;
constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
constexpr std::size_t chunk_header_bytes = 384;
constexpr std::size_t root_bytes = 64;

constexpr std::uint64_t key_of(std::uint64_t i) { return (i + 1) * 0x9e37'79b9'7f4a'7c15U; }
constexpr bool is_erased(std::uint64_t i) { return i % erased_one_in == 0; }

using model = std::map<std::uint64_t, std::uint64_t>;

struct subject {
  const char* index;
  // Entries that one damaged place may cost unseen: those of a hash table whose words are not told from its links here.
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
    const pid_t id = ::fork();
    if (id == 0) {
      media::pmem pool(path_, {.create_bytes = pool_bytes, .huge_pages = false});
      const auto index = bench::find_index(GetParam().index).open_root(pool, "orders");
      constexpr std::uint64_t step = 7919;  // has no factor in common with `inserted`
      for (std::uint64_t n = 0; n < inserted; ++n) {
        const std::uint64_t key = key_of(n * step % inserted);
        static_cast<void>(index->insert(key, ~key));
      }
      for (std::uint64_t i = 0; i < inserted; ++i)
        if (is_erased(i)) static_cast<void>(index->erase(key_of(i)));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(id, &status, 0);
    if (status != 0) throw std::runtime_error("no pool was made");
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

  // Opens, checks and walks the index, in a process of its own. "all": every entry that was not hit is there, and no
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
               " that were erased are there";
      });
    } catch (const error& e) {
      return std::string("wrong: ") + e.what();
    }
  }

  tests::temporary_folder folder_;
  std::string path_ = folder_.file("pool");
  std::string sound_;
  model model_;
  std::set<std::uint64_t> patterns_;  // keys and values, also those that were erased
  std::vector<std::size_t> words_;    // of the heap that are not 0
  std::vector<std::size_t> links_;    // of these, those that are no key and no value
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
        EXPECT_EQ(read.problem.find("was ended by"), std::string::npos) << read.problem;
        EXPECT_EQ(read.problem.find("no end after"), std::string::npos) << read.problem;
      }
    }
    put(done.at, sound_.substr(done.at, done.bytes.size()));
  }
  EXPECT_LE(beyond_us, 1 + all_seeds.size() / 10);
  std::printf("  %s: %zu of %zu refused, %zu not opened by libpmemobj\n", GetParam().index, refused, all_seeds.size(),
              beyond_us);
}

constexpr auto name_of = [](const auto& one) { return one.param.index; };

// A line here puts an index to the test.
INSTANTIATE_TEST_SUITE_P(all, mutated_pools,
                         testing::Values(subject{"cceh", 8, 8, 0}, subject{"fp_tree", 0, 0, 3},
                                         subject{"skip_list", 0, 0, 0}, subject{"skip_list_pm", 0, 0, 0},
                                         // A repair of FAST-FAIR ends at a link that is lost.
                                         subject{"fast_fair", 0, inserted, 0}, subject{"level_hashing", 8, 8, 0}),
                         name_of);

}  // namespace
}  // namespace pmlab::pool
