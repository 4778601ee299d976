// A toy: every new value takes a cell of a room that only fills up, as the deltas of a Bw-tree do (P-BwTree): a tail,
// chunks with headers, and a pointer to the cells.
#include "small_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <array>

namespace pmlab::toys {
namespace {

// Numbers 1 to 4: the names are in ../scoreboard/bugs.toml.
enum defect : int { tail_unflushed = 1, chunk_unflushed, room_unflushed, root_unflushed };

constexpr std::size_t keys = 4096;
constexpr std::size_t cells = 16384;
constexpr std::size_t chunk_cells = 8;
constexpr std::uint64_t absent = ~std::uint64_t{0};

template <class Medium>
class delta_body {
 public:
  static constexpr std::string_view name = "delta_room";
  struct entry {
    word key{0};
    word cell{0};  // its number; 0: the entry was never used, `absent`: its key is not there
  };
  struct alignas(media::cache_line_bytes) area {
    word room{0};  // leads to the cells
    std::array<word, 7> more{};
    word tail{0};  // on a line of its own
    std::array<word, 7> unused{};
    std::array<word, cells / chunk_cells> first_of_chunk{};
    std::array<entry, keys> directory{};
    std::array<word, cells> cell{};
  };
  static bool root_is_durable() { return !has(root_unflushed); }

  delta_body(Medium& medium, area& a, std::mutex& /*mutex*/) : medium_(medium), area_(a) {
    if (get(a.room) != 0 || (has(room_unflushed) && get(a.tail) != 0)) return;
    put(a.room, medium_.locate(a.cell.data()).word());
    if (!has(room_unflushed)) media::persist(medium_, a.room);
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    entry* const e = search(key);
    return e == nullptr || is_absent(*e) ? std::nullopt : std::optional(get(cell(get(e->cell))));
  }
  bool add(std::uint64_t key, std::uint64_t value) {
    entry* const e = search(key);
    const std::uint64_t n = e == nullptr ? 0 : take_cell();
    if (n == 0) return false;
    put(cell(n), value);
    media::persist(medium_, cell(n));
    put(e->key, key);
    put(e->cell, n);
    media::persist(medium_, *e);
    return true;
  }
  void set(std::uint64_t key, std::uint64_t value) { add(key, value); }
  void take(std::uint64_t key) {
    entry* const e = search(key);
    put(e->cell, absent);
    media::persist(medium_, e->cell);
  }
  template <class Function>
  void for_each(Function&& function) {
    for (entry& e : area_.directory)
      if (!is_absent(e)) function(get(e.key), get(cell(get(e.cell))));
  }
  [[nodiscard]] std::uint64_t held() { return 0; }

 private:
  static bool is_absent(const entry& e) { return get(e.cell) == 0 || get(e.cell) == absent; }
  // The entry of the key, or the unused one where it belongs.
  entry* search(std::uint64_t key) {
    for (std::size_t i = 0; i < keys; ++i) {
      entry& e = area_.directory[(hash_of(key) + i) % keys];
      if (get(e.cell) == 0 || get(e.key) == key) return &e;
    }
    return nullptr;
  }

  word& cell(std::uint64_t n) {
    word* const room = medium_.resolve(media::pointer<word>(get(area_.room)));
    return room[get(area_.first_of_chunk[n / chunk_cells]) + n % chunk_cells];
  }

  // (A1) < (A2): a cell is taken durably before it is used. 0: there is none.
  std::uint64_t take_cell() {
    const std::uint64_t n = get(area_.tail) + 1;
    if (n == cells) return 0;
    if (n == 1 || n % chunk_cells == 0) {
      word& first = area_.first_of_chunk[n / chunk_cells];
      put(first, n / chunk_cells * chunk_cells);
      if (!has(chunk_unflushed)) media::persist(medium_, first);
    }
    put(area_.tail, n);
    if (!has(tail_unflushed)) media::persist(medium_, area_.tail);  // (A1)
    return n;                                                       // (A2)
  }

  Medium& medium_;
  area& area_;
};

template <media::medium Medium>
using delta_room = small_map<Medium, delta_body>;
const bool registered = verify::register_subject<delta_room>();

}  // namespace
}  // namespace pmlab::toys
