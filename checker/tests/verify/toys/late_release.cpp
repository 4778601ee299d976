// A toy: an erase leaves its block with the slot, and only the next opening gives it back.
#include "boxes.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public boxed_rules<Medium> {
 public:
  static constexpr std::string_view name = "late_release";

  rules(Medium& medium, table& t) : boxed_rules<Medium>(medium, t) {
    for (slot& s : t.all)
      if (is_kept(s)) give_back(s);
  }

  [[nodiscard]] std::uint64_t kept_bytes() const {
    std::uint64_t bytes = 0;
    for (slot& s : this->table_.all) bytes += is_kept(s) ? sizeof(box) : 0;
    return bytes;
  }

  bool put(slot& s, std::uint64_t value) {
    if (is_kept(s)) give_back(s);
    return boxed_rules<Medium>::put(s, value);
  }
  void take(slot& s) {
    if (!has_defect()) {
      typename Medium::publication change(this->medium_);
      change.release(&this->box_of(s), sizeof(box));
      change.store(s.live, 0);
      change.store(s.value, 0);
      return change.commit();
    }
    s.live.store(0, std::memory_order_release);
    media::persist(this->medium_, s);
  }

 private:
  static bool is_kept(slot& s) {
    return s.live.load(std::memory_order_acquire) == 0 && s.value.load(std::memory_order_acquire) != 0;
  }
  void give_back(slot& s) {
    typename Medium::publication change(this->medium_);
    change.release(&this->box_of(s), sizeof(box));
    change.store(s.value, 0);
    change.commit();
  }
};

template <media::medium Medium>
using late_release = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<late_release>();

}  // namespace
}  // namespace pmlab::toys
