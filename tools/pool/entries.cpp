// The entries of one root, as far as they can be read.
#include "tools/pool/entries.hpp"
#include "tools/pool/child.hpp"
#include "tools/pool/strings_text.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>

#include <fmt/format.h>
#include <sys/mman.h>

namespace pmlab::pool {

namespace {

constexpr std::size_t room_of_count = alignof(std::max_align_t);

}  // namespace

shared_entries::shared_entries(std::uint64_t most)
    : most_(most), bytes_(room_of_count + static_cast<std::size_t>(most) * sizeof(indexes::entry)) {
  void* const area = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED)
    throw error(fmt::format("cannot map {} bytes for entries: {}", bytes_, std::strerror(errno)),
                "close other programs, or allow overcommitment");
  count_ = ::new (area) std::atomic<std::uint64_t>(0);
  first_ = reinterpret_cast<indexes::entry*>(static_cast<char*>(area) + room_of_count);
}

shared_entries::~shared_entries() { ::munmap(count_, bytes_); }

bool shared_entries::add(const indexes::entry& e) noexcept {
  const std::uint64_t count = count_->load(std::memory_order_relaxed);
  if (count == most_) return false;
  first_[count] = e;
  count_->store(count + 1, std::memory_order_release);
  return true;
}

std::span<indexes::entry> shared_entries::all() noexcept {
  return {first_, static_cast<std::size_t>(count_->load(std::memory_order_acquire))};
}

namespace {

// Sorts, and removes the second of equal keys. Returns how many of these had another value.
std::uint64_t put_in_order(std::span<indexes::entry>& entries) {
  const auto before = [](const indexes::entry& a, const indexes::entry& b) { return a.key < b.key; };
  if (!std::is_sorted(entries.begin(), entries.end(), before)) std::stable_sort(entries.begin(), entries.end(), before);
  std::uint64_t contradictions = 0;
  std::size_t kept = 0;
  for (const indexes::entry& e : entries) {
    if (kept != 0 && entries[kept - 1].key == e.key)
      contradictions += entries[kept - 1].value != e.value ? 1 : 0;
    else
      entries[kept++] = e;
  }
  entries = entries.first(kept);
  return contradictions;
}

using keep = std::function<void(indexes::key_type, indexes::value_type)>;
using walk = std::function<void(media::pmem&, const std::string& root, const keep&)>;

std::string reading_of(const contents& all, const root& from) {
  return fmt::format("reading root '{}' of pool {}", printable(from.facts.name), all.path);
}

// Has `reads` fill `kept` in a child process. Returns why it did not terminate; empty: it did.
std::string problem_of(const contents& all, const root& from, patience each, shared_entries& kept, const walk& reads) {
  const std::string doing = reading_of(all, from);
  try {
    return look_at(all.path, doing, each, [&](media::pmem& pool) -> std::string {
      reads(pool, pool.roots().at(from.position).name, [&](indexes::key_type key, indexes::value_type value) {
        if (kept.add({key, value})) return;
        throw error(doing + ": it gives more entries than the pool has room for", std::string(damage::remedy));
      });
      return {};
    });
  } catch (const error& e) {
    return e.what();
  }
}

// All of them come in one piece: a walk over keys that cannot be read ends with its process.
read_entries strings_of(const contents& all, const root& from, patience each) {
  read_entries result;
  const root& below = words_of(all, from);
  try {
    const strings_kind kind = kind_of_strings(from.facts.layout, *below.index, from.words);
    result.values = kind.values;
    if (below.is_empty() || !from.facts.made) return result;
    const std::string text = look_at(all.path, reading_of(all, from), each, [&](media::pmem& pool) {
      const std::shared_ptr<erased::any_index> words = below.index->open_root(pool, from.words);
      std::string lines;
      for (const auto& entry : entries_of_strings({*words, kind, from.words}))
        lines += line_of(entry, result.values) += '\n';
      return lines;
    });
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      result.texts.push_back(entry_of(rest.substr(0, end), result.values).value());
      rest.remove_prefix(end + 1);
    }
  } catch (const error& e) {
    result.problem = e.what();
  }
  return result;
}

}  // namespace

read_entries entries_of(const contents& all, const root& from, reading how, patience each) {
  if (!from.words.empty()) return strings_of(all, from, each);
  // No index needs less than its two words for an entry: more entries than that run in a circle.
  const auto kept = std::make_shared<shared_entries>(all.file_bytes / sizeof(indexes::entry));
  read_entries result{kept, {}, {}, 0};
  if (from.is_empty()) return result;
  const bench::index_description& index = *from.index;
  const bool salvages = how == reading::salvaged && index.salvage_root;
  result.problem = problem_of(all, from, each, *kept, [&](media::pmem& pool, const std::string& name, const keep& add) {
    if (salvages)
      index.salvage_root(pool, name, add);
    else
      index.open_root(pool, name)->for_each(add);
  });
  std::span<indexes::entry> found = kept->all();
  result.contradictions = put_in_order(found);
  result.entries = found;
  return result;
}

}  // namespace pmlab::pool
