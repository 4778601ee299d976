// A toy: the assignment of a 16-byte struct, taken for atomic.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <new>

namespace pmlab::toys {
namespace {

struct [[gnu::may_alias]] two_words {
  std::uint64_t live;
  std::uint64_t value;
};

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "torn_store";
  using plain_rules<Medium>::plain_rules;

  [[nodiscard]] bool is_live(slot& s) { return pair_of(s).live != 0; }
  [[nodiscard]] std::uint64_t value(slot& s) { return pair_of(s).value; }

  bool put(slot& s, std::uint64_t value) {
    two_words& pair = pair_of(s);
    if (has_defect()) {
      pair = {1, value};
    } else {
      std::atomic_ref(pair.value).store(value, std::memory_order_release);
      std::atomic_ref(pair.live).store(1, std::memory_order_release);
    }
    media::persist(this->medium_, s);
    return true;
  }
  bool set(slot& s, std::uint64_t value) {
    std::atomic_ref(pair_of(s).value).store(value, std::memory_order_release);
    media::persist(this->medium_, s);
    return true;
  }
  void take(slot& s) {
    std::atomic_ref(pair_of(s).live).store(0, std::memory_order_release);
    media::persist(this->medium_, s);
  }

 private:
  // `live` and `value` of a slot stand side by side.
  static two_words& pair_of(slot& s) {
    return *std::launder(reinterpret_cast<two_words*>(reinterpret_cast<std::byte*>(&s) + offsetof(slot, live)));
  }
};

template <media::medium Medium>
using torn_store = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<torn_store>();

}  // namespace
}  // namespace pmlab::toys
