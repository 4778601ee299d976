// A toy: a lock-free stack whose head has no tag, so that a node may be pushed again while another thread pops it.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <vector>

namespace pmlab::toys {
namespace {

// Values lie in cells of the map; a stack in DRAM holds the free cells.
template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "aba";
  rules(Medium& medium, table& t) : plain_rules<Medium>(medium, t), next_(cells) {
    std::vector<bool> used(cells);
    for (slot& s : t.all)
      if (this->is_live(s)) used[s.value.load()] = true;
    for (std::uint64_t cell = cells; cell > 0; --cell)
      if (!used[cell - 1]) push(cell - 1);
  }

  void lock(slot& s) { locks_[this->number_of(s) % locks_.size()].lock(); }
  void unlock(slot& s) { locks_[this->number_of(s) % locks_.size()].unlock(); }
  [[nodiscard]] std::uint64_t value(slot& s) { return cell(s.value.load(std::memory_order_acquire)).load(); }

  bool put(slot& s, std::uint64_t value) { return plain_rules<Medium>::put(s, filled(value)); }
  bool set(slot& s, std::uint64_t value) {
    const std::uint64_t old = s.value.load(std::memory_order_acquire);
    plain_rules<Medium>::set(s, filled(value));
    push(old);
    return true;
  }
  void take(slot& s) {
    plain_rules<Medium>::take(s);
    push(s.value.load(std::memory_order_acquire));
  }

 private:
  // Head: number of the top cell, and above it a tag that every pop changes (without the defect).
  static constexpr std::uint64_t cells = slots;
  static constexpr std::uint64_t number_mask = 0xffff;
  static constexpr std::uint64_t none = number_mask;
  static constexpr std::uint64_t one_tag = number_mask + 1;

  [[nodiscard]] word& cell(std::uint64_t number) { return this->table_.cells[number]; }

  std::uint64_t filled(std::uint64_t value) {
    const std::uint64_t number = pop();
    cell(number).store(value, std::memory_order_release);
    media::persist(this->medium_, cell(number));
    return number;
  }

  std::uint64_t pop() {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint64_t below = next_[head & number_mask].load(std::memory_order_acquire);
      const std::uint64_t tag = has_defect() ? 0 : (head & ~number_mask) + one_tag;
      if (head_.compare_exchange_weak(head, tag | below, std::memory_order_acq_rel)) return head & number_mask;
    }
  }

  void push(std::uint64_t number) {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    do next_[number].store(head & number_mask, std::memory_order_release);
    while (!head_.compare_exchange_weak(head, (head & ~number_mask) | number, std::memory_order_acq_rel));
  }

  word head_{none};
  std::vector<word> next_;
  std::array<std::mutex, 256> locks_;
};

template <media::medium Medium>
using aba = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<aba>();

}  // namespace
}  // namespace pmlab::toys
