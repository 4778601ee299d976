// A toy: a hash table of lines with chains, which is copied to grow: P-CLHT, with the defects that several tools have
// found in it.
#include "chained_lines.hpp"

#include "checker/verify/register_subject.hpp"

#include <thread>

namespace pmlab::toys {
namespace {

// Numbers 1 to 9: the names are in ../scoreboard/bugs.toml.
enum defect : int {
  chains_unflushed = 1,
  root_unflushed,
  header_unflushed,
  lines_unflushed,
  seen_before_durable,
  old_table_leaks,
  new_table_leaks,
  lock_stays,
  released_twice
};

template <class Medium>
class chained_body {
 public:
  static constexpr std::string_view name = "chained_table";
  struct alignas(media::cache_line_bytes) area {
    word table{0};
    // While a table is replaced in steps: both of them.
    word outgoing{0};
    word incoming{0};
    word lock{0};  // in persistent memory, as theirs: recovery must free it
    std::array<word, 4> unused{};
  };
  static bool root_is_durable() { return !has(root_unflushed); }

  chained_body(Medium& medium, area& a, std::mutex& mutex) : medium_(medium), area_(a), mutex_(mutex) {
    if (!has(lock_stays)) put(area_.lock, 0);
    if (get(area_.table) == 0) {
      create();
      return;
    }
    for (const word* w : {&area_.outgoing, &area_.incoming})
      if (get(*w) != 0 && get(*w) != get(area_.table)) {
        release(*w);
        return;
      }
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    const auto p = search(key);
    return p.in == nullptr ? std::nullopt : std::optional(get(p.in->value[p.slot]));
  }
  bool add(std::uint64_t key, std::uint64_t value) {
    if (get(area_.table) == 0) return false;
    lock();
    bool added = false;
    for (int attempt = 0; !added && attempt < 4; ++attempt) {
      while (has(seen_before_durable) && grows_) pause();
      added = table().add(&medium_, key, value);
      if ((!added || table().is_crowded()) && !grow()) break;
    }
    put(area_.lock, 0);
    return added;
  }
  void set(std::uint64_t key, std::uint64_t value) {
    const auto p = search(key);
    put(p.in->value[p.slot], value);
    media::persist(medium_, *p.in);
  }
  void take(std::uint64_t key) {
    const auto p = search(key);
    put(p.in->present, get(p.in->present) & ~(std::uint64_t{1} << p.slot));
    media::persist(medium_, *p.in);
  }
  template <class Function>
  void for_each(Function&& function) {
    if (get(area_.table) != 0) table().for_each(function);
  }
  [[nodiscard]] std::uint64_t held() {
    std::uint64_t bytes = get(area_.table) == 0 ? 0 : table().bytes();
    for (const word* w : {&area_.outgoing, &area_.incoming})
      if (get(*w) != 0 && get(*w) != get(area_.table)) bytes += named(*w).bytes();
    return bytes;
  }

 private:
  using publication = typename Medium::publication;

  chained_lines& named(const word& w) { return *medium_.resolve(media::pointer<chained_lines>(get(w))); }
  chained_lines& table() { return named(area_.table); }
  chained_lines::place search(std::uint64_t key) {
    return get(area_.table) == 0 ? chained_lines::place{} : table().search(key);
  }

  void lock() {
    for (std::uint64_t free = 0; !area_.lock.compare_exchange_weak(free, 1, std::memory_order_acq_rel); free = 0)
      std::this_thread::yield();
  }
  // Others work meanwhile.
  void pause() {
    put(area_.lock, 0);
    mutex_.unlock();
    std::this_thread::yield();
    mutex_.lock();
    lock();
  }

  void create() {
    publication change(medium_);
    chained_lines* const made = chained_lines::make(change, 2);
    if (made == nullptr) return;
    if (!has(header_unflushed)) media::flush(medium_, *made);
    if (!has(lines_unflushed)) medium_.flush(&made->line(0), made->bytes() - sizeof *made);
    medium_.fence();
    change.store(area_.table, medium_.locate(made).word());
    change.commit();
  }

  // A table that is not in use any more, or not yet. With the defect, its name is taken away afterwards and not
  // flushed.
  void release(const word& w) {
    publication change(medium_);
    change.release(&named(w), named(w).bytes());
    if (!has(released_twice)) {
      change.store(area_.outgoing, 0);
      change.store(area_.incoming, 0);
    }
    change.commit();
    put(area_.outgoing, 0);
    put(area_.incoming, 0);
  }

  // (G1) < (G2): the new table is durable before it is the table. The old one goes in the same change; defects have
  // steps.
  // False: no space.
  bool grow() {
    chained_lines& old = table();
    publication change(medium_);
    chained_lines* const made = chained_lines::make(change, 2 * get(old.lines));
    if (made == nullptr) return false;
    old.for_each([&](std::uint64_t key, std::uint64_t value) { made->add(static_cast<Medium*>(nullptr), key, value); });
    const std::size_t lines = get(made->lines);
    medium_.flush(made, has(chains_unflushed) ? made->bytes() - lines * sizeof(chained_line) : made->bytes());
    // With the defect, the first line's chain in place of each line's.
    for (std::uint64_t n = has(chains_unflushed) ? get(made->line(0).next) : 0; n != 0; n = get(made->line(n).next))
      media::flush(medium_, made->line(n));
    medium_.fence();  // (G1)
    replace(change, old, medium_.locate(made).word());
    return true;
  }

  void replace(publication& change, chained_lines& old, std::uint64_t made) {
    const bool in_steps = has(seen_before_durable) || has(released_twice);
    if (in_steps) {
      change.store(area_.outgoing, get(area_.table));
      change.store(area_.incoming, made);
    }
    if (has(new_table_leaks) || has(seen_before_durable)) change.commit();
    if (has(seen_before_durable)) {
      put(area_.table, made);
      grows_ = true;
      pause();
      grows_ = false;
      media::persist(medium_, area_.table);
      return release(area_.outgoing);
    }
    publication next(medium_);
    publication& names = has(new_table_leaks) ? next : change;
    names.store(area_.table, made);  // (G2)
    if (!has(old_table_leaks) && !in_steps) names.release(&old, old.bytes());
    names.commit();
    if (has(released_twice)) release(area_.outgoing);
    if (!has(old_table_leaks)) return;
    publication after(medium_);
    after.release(&old, old.bytes());
    after.commit();
  }

  Medium& medium_;
  area& area_;
  std::mutex& mutex_;
  bool grows_ = false;
};

template <media::medium Medium>
using chained_table = small_map<Medium, chained_body>;
const bool registered = verify::register_subject<chained_table>();

}  // namespace
}  // namespace pmlab::toys
