// A toy: a thread that announces itself, and then looks for others, does not wait until its announcement is visible.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"
#include <pmlab/sync/relax.hpp>

namespace pmlab::toys {
namespace {

inline constexpr std::size_t places = 16;

// The place of the calling thread while it locks. A number that threads count up from round to round would give a
// replay other places than the run had.
thread_local std::size_t my_place = 0;

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "missing_fence";
  using plain_rules<Medium>::plain_rules;

  void lock(slot& /*s*/) {
    my_place = 0;
    while (claimed_[my_place].exchange(1) != 0) my_place = (my_place + 1) % places;
    for (sync::backoff wait; !alone(my_place); wait.pause())
      if (announced_[my_place].load(std::memory_order_relaxed) != 0)
        announced_[my_place].store(0, std::memory_order_release);
  }
  void unlock(slot& /*s*/) {
    announced_[my_place].store(0, std::memory_order_release);
    claimed_[my_place].store(0, std::memory_order_release);
  }

 private:
  [[nodiscard]] bool alone(std::size_t mine) {
    if (has_defect())
      announced_[mine].store(1, std::memory_order_release);
    else
      announced_[mine].exchange(1, std::memory_order_seq_cst);
    for (std::size_t i = 0; i < places; ++i)
      if (i != mine && announced_[i].load(std::memory_order_acquire) != 0) return false;
    return true;
  }

  std::array<word, places> claimed_{};
  std::array<word, places> announced_{};
};

template <media::medium Medium>
using missing_fence = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<missing_fence>();

}  // namespace
}  // namespace pmlab::toys
