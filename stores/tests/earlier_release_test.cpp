// Media that a release before 0.2 wrote, whose checksums were hash_of_bytes: each opens, has what was written, takes
// changes, and opens again; that release refuses it then. `data` has the files: PMLAB_WRITE_MEDIA=FOLDER, with the
// headers of such a release, makes this program write them.
#include <pmlab/base/checksum.hpp>
#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include <pmlab/stores/tiered.hpp>

#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

namespace pmlab::tests {
namespace {

constexpr std::uint32_t block = 512;
constexpr blocks::geometry drive_shape{.blocks = 1024, .block_bytes = block, .atomic_bytes = 0, .volatile_cache = true};

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::string unpacked(const std::string& name) {
  const std::string path = std::string(PMLAB_TEST_SOURCES) + "/stores/tests/data/" + name + ".gz";
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string all;
  std::array<char, 1 << 16> part;
  for (int got = 0; file != nullptr && (got = gzread(file, part.data(), part.size())) > 0;)
    all.append(part.data(), static_cast<std::size_t>(got));
  if (file != nullptr) gzclose(file);
  EXPECT_FALSE(all.empty()) << path;
  return all;
}
void pack(const std::string& path, const std::string& all) {
  const gzFile file = gzopen((path + ".gz").c_str(), "wb9");
  EXPECT_EQ(gzwrite(file, all.data(), static_cast<unsigned>(all.size())), static_cast<int>(all.size()));
  gzclose(file);
}

std::string key_of(std::uint64_t n) { return "key " + std::to_string(1000 + n); }
// Different each time that a key is written. Some are longer than a block.
std::string value_of(std::uint64_t n, std::uint64_t version) {
  return std::string(10 + n * 37 % 700, static_cast<char>('a' + (n + version) % 26));
}
// Each version is of a third of the blocks or keys.
std::optional<std::uint64_t> newest_of(std::uint64_t n, std::uint64_t versions) {
  std::optional<std::uint64_t> newest;
  for (std::uint64_t v = 1; v <= versions; ++v)
    if (v % 3 == n % 3) newest = v;
  return newest;
}
std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The drives and the pool of one store. `pool` is a file.
struct media_of_a_store {
  blocks::memory drive{drive_shape};
  blocks::memory flash{blocks::geometry{.blocks = 2049, .block_bytes = block}};
  temporary_folder folder{};
  std::string path = folder.file("pool");

  [[nodiscard]] media::pmem_options of_pool() const {
    return {.create_bytes = std::filesystem::exists(path) ? 0 : media::pmem::least_pool_bytes};
  }
  void write(const std::string& name, bool has_flash) {
    const auto text_of = [](blocks::memory& d) {
      return std::string(reinterpret_cast<const char*>(d.content().data()), d.content().size());
    };
    pack(name + ".drive", text_of(drive));
    if (has_flash) pack(name + ".flash", text_of(flash));
    if (std::filesystem::exists(path)) pack(name + ".pool", contents_of(path));
  }
  void read(const std::string& name, bool has_flash, bool has_pool) {
    const auto fill = [&](blocks::memory& d, const std::string& ending) {
      const std::string content = unpacked(name + ending);
      ASSERT_EQ(content.size(), d.content().size());
      std::memcpy(d.content().data(), content.data(), content.size());
    };
    fill(drive, ".drive");
    if (has_flash) fill(flash, ".flash");
    if (has_pool) std::ofstream(path, std::ios::binary) << unpacked(name + ".pool");
  }
};

// Each kind of store: `use` opens it, and closes it behind the action.
constexpr stores::chunk_store_options chunks{.chunk_bytes = 8 * block, .ring = 3};
struct chunk_kind {
  // The release before finds no session of its own.
  static void expect_refused_by_it(media_of_a_store& m) {
    using stores::detail::chunk_store::drive_session;
    for (const std::size_t place : {0U, 1U}) {
      drive_session there;
      std::memcpy(&there, m.drive.content().data() + drive_session::offset_of(place), sizeof there);
      EXPECT_EQ(there.checksum, there.right_checksum()) << place;
    }
  }
};
struct chunks_in_a_pool : chunk_kind {
  static constexpr const char* name = "chunks_in_a_pool";
  static constexpr bool has_flash = false;
  static constexpr bool has_pool = true;
  using store = stores::chunk_store<media::pmem, blocks::memory>;
  template <class Action>
  static void use(media_of_a_store& m, Action&& action) {
    media::pmem pool(m.path, m.of_pool());
    auto s = store::open(pool, m.drive, chunks);
    action(s);
  }
};
struct chunks_on_the_drive : chunk_kind {
  static constexpr const char* name = "chunks_on_the_drive";
  static constexpr bool has_flash = false;
  static constexpr bool has_pool = false;
  using store = stores::chunk_store<stores::records_on_blocks, blocks::memory>;
  template <class Action>
  static void use(media_of_a_store& m, Action&& action) {
    auto s = store::open(m.drive, chunks);
    action(s);
  }
};
using pairs_in_a_pool = stores::kv_device<media::pmem, blocks::memory>;
template <class Action>
void use_pairs(media_of_a_store& m, Action&& action) {
  media::pmem pool(m.path, m.of_pool());
  auto pairs = pairs_in_a_pool::open(pool, m.flash,
                                     {.unit_bytes = 64,
                                      .superblock_bytes = 16384,
                                      .over_provisioning = 0.2,
                                      .buffer_bytes = 16384,
                                      .largest_value = 4096});
  action(pairs);
}
struct chunks_in_pairs : chunk_kind {
  static constexpr const char* name = "chunks_in_pairs";
  static constexpr bool has_flash = true;
  static constexpr bool has_pool = true;
  using store = stores::chunk_store<stores::records_on_kv<pairs_in_a_pool>, blocks::memory>;
  template <class Action>
  static void use(media_of_a_store& m, Action&& action) {
    use_pairs(m, [&](pairs_in_a_pool& pairs) {
      auto s = store::open(pairs, m.drive, chunks, {.cache_bytes = 2100});
      action(s);
    });
  }
};

// Each third block, so that there are records of parts of chunks.
template <class Store>
void change(Store& s, std::uint64_t version) {
  auto volume = s.volume("a", {.bytes = 120 * block});
  for (std::uint64_t n = version % 3; n < 120; n += 3) {
    const std::string data(block, static_cast<char>('a' + (n + version) % 26));
    volume.write(n * block, bytes_of(data));
  }
}
template <class Store>
void expect_all(Store& s, std::uint64_t versions) {
  auto volume = s.volume("a");
  std::vector<std::byte> got(block);
  for (std::uint64_t n = 0; n < 120; ++n) {
    const std::optional<std::uint64_t> newest = newest_of(n, versions);
    volume.read(n * block, got);
    const auto right = newest ? static_cast<std::byte>('a' + (n + *newest) % 26) : std::byte{};
    EXPECT_EQ(got, std::vector<std::byte>(block, right)) << n;
  }
  EXPECT_TRUE(s.check().ok());
}

struct pairs {
  static constexpr const char* name = "pairs";
  static constexpr bool has_flash = true;
  static constexpr bool has_pool = true;
  template <class Action>
  static void use(media_of_a_store& m, Action&& action) {
    use_pairs(m, action);
  }
  // The header of the flash has a checksum that it does not know.
  static void expect_refused_by_it(media_of_a_store& m) {
    stores::detail::kv_ssd::flash_header h;
    std::memcpy(static_cast<void*>(&h), m.flash.content().data(), sizeof h);
    EXPECT_EQ(h.checksum, checksum(&h, offsetof(stores::detail::kv_ssd::flash_header, checksum)));
  }
};
// More than the write buffer holds: some pairs are on the flash, the newest ones in the pool.
void change(pairs_in_a_pool& p, std::uint64_t version) {
  for (std::uint64_t n = version % 3; n < 100; n += 3)
    EXPECT_NE(p.put(key_of(n), bytes_of(value_of(n, version))), stores::kv_outcome::full);
}
template <class Get>
void expect_newest(std::uint64_t versions, Get&& get) {
  for (std::uint64_t n = 0; n < 100; ++n) {
    const std::optional<std::uint64_t> newest = newest_of(n, versions);
    EXPECT_EQ(get(key_of(n)), newest ? std::optional(value_of(n, *newest)) : std::nullopt) << n;
  }
}

void expect_all(pairs_in_a_pool& p, std::uint64_t versions) {
  expect_newest(versions, [&](const std::string& key) -> std::optional<std::string> {
    const auto found = p.get(key);
    if (!found) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(found->data()), found->size());
  });
}

using clocked = stores::tiered<blocks::memory, blocks::virtual_clock>;
struct tiers {
  static constexpr const char* name = "tiers";
  static constexpr bool has_flash = true;
  static constexpr bool has_pool = false;
  template <class Action>
  static void use(media_of_a_store& m, Action&& action) {
    stores::tiered_options o;
    o.loss = {.at_most = std::chrono::milliseconds(10), .or_bytes = 1 << 20};
    o.memory_limit = 64 << 10;
    o.background = false;
    o.most_sets = 2;
    o.most_leaf_sets = 2;
    o.leaf_bytes = 20000;
    o.segment_bytes = 8192;
    o.manifest_bytes = 4096;
    o.page_bytes = 512;
    blocks::virtual_time time;
    const auto db = clocked::open({.staging = m.flash, .capacity = m.drive}, o, blocks::virtual_clock(time));
    action(*db);
  }
  // It knows layouts 2 and 3.
  static void expect_refused_by_it(media_of_a_store& m) {
    for (blocks::memory* const d : {&m.drive, &m.flash}) {
      stores::detail::tiered::drive_header h;
      std::memcpy(static_cast<void*>(&h), d->content().data(), sizeof h);
      EXPECT_EQ(h.version, 4U);
    }
  }
};

void change(clocked& s, std::uint64_t version) {
  auto t = s.table("t");
  for (std::uint64_t n = version % 3; n < 100; n += 3) t.put(key_of(n), value_of(n, version));
  s.sync();
  // The newest changes stay in the log alone.
  if (version % 4 != 0) s.compact();
}
void expect_all(clocked& s, std::uint64_t versions) {
  auto t = s.table("t");
  expect_newest(versions, [&](const std::string& key) { return t.get(key); });
}

constexpr std::uint64_t written = 8;

template <class Kind>
class EarlierRelease : public testing::Test {};
using kinds = testing::Types<chunks_in_a_pool, chunks_on_the_drive, chunks_in_pairs, pairs, tiers>;
TYPED_TEST_SUITE(EarlierRelease, kinds);

// `killed`: as a process left them that was killed.
TYPED_TEST(EarlierRelease, what_it_wrote_is_there) {
  for (const std::string ending : {".killed", ".closed"}) {
    SCOPED_TRACE(TypeParam::name + ending);
    media_of_a_store m;
    if (const char* const folder = std::getenv("PMLAB_WRITE_MEDIA")) {
      const std::string name = std::string(folder) + "/" + TypeParam::name + ending;
      TypeParam::use(m, [&](auto& s) {
        for (std::uint64_t v = 1; v <= written; ++v) change(s, v);
        if (ending == ".killed") m.write(name, TypeParam::has_flash);
      });
      if (ending == ".closed") m.write(name, TypeParam::has_flash);
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(m.read(TypeParam::name + ending, TypeParam::has_flash, TypeParam::has_pool));
    for (std::uint64_t v = written; v < written + 5; ++v)
      TypeParam::use(m, [&](auto& s) {
        expect_all(s, v);
        TypeParam::expect_refused_by_it(m);
        change(s, v + 1);
      });
  }
}

}  // namespace
}  // namespace pmlab::tests
