// A toy: an update that flushes what it has flushed, and fences what it has fenced. It is slow, and correct.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "extra_flush";
  using plain_rules<Medium>::plain_rules;

  bool set(slot& s, std::uint64_t value) {
    Medium& medium = this->medium_;
    s.value.store(value, std::memory_order_release);
    medium.flush(&s, sizeof s);
    if (has_defect()) medium.flush(&s, sizeof s);          // nothing new in the line
    if (has_defect()) medium.flush(&copy_, sizeof copy_);  // not persistent
    medium.fence();
    if (has_defect()) medium.fence();  // nothing to wait for
    return true;
  }

 private:
  word copy_{0};
};

template <media::medium Medium>
using extra_flush = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<extra_flush>();

}  // namespace
}  // namespace pmlab::toys
