// A toy: bits of one word, set by load and store instead of one atomic operation.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

// Which slots are live is in a word for 64 of them; each slot has a lock of its own.
template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "lost_update";
  using plain_rules<Medium>::plain_rules;

  void lock(slot& s) { locks_[this->number_of(s) % locks_.size()].lock(); }
  void unlock(slot& s) { locks_[this->number_of(s) % locks_.size()].unlock(); }
  [[nodiscard]] bool is_live(slot& s) { return (word_of(s).load(std::memory_order_acquire) & bit_of(s)) != 0; }

  bool put(slot& s, std::uint64_t value) {
    plain_rules<Medium>::set(s, value);
    change(s, bit_of(s), 0);
    return true;
  }
  void take(slot& s) { change(s, 0, bit_of(s)); }

 private:
  [[nodiscard]] word& word_of(slot& s) { return this->table_.bits[this->number_of(s) / 64]; }
  [[nodiscard]] std::uint64_t bit_of(slot& s) { return std::uint64_t{1} << (this->number_of(s) % 64); }

  void change(slot& s, std::uint64_t on, std::uint64_t off) {
    word& w = word_of(s);
    if (has_defect()) {
      w.store((w.load(std::memory_order_acquire) | on) & ~off, std::memory_order_release);
    } else if (on != 0) {
      w.fetch_or(on, std::memory_order_acq_rel);
    } else {
      w.fetch_and(~off, std::memory_order_acq_rel);
    }
    media::persist(this->medium_, w);
  }

  std::array<std::mutex, 256> locks_;
};

template <media::medium Medium>
using lost_update = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<lost_update>();

}  // namespace
}  // namespace pmlab::toys
