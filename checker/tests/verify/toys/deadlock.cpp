// A toy: two locks, taken in both orders.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

// A lock for each of 16 groups of slots, and one for the number of changes.
template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "deadlock";
  using plain_rules<Medium>::plain_rules;

  void lock(slot& s) {
    const bool reversed = has_defect() && this->number_of(s) / groups_.size() % 2 == 1;
    std::mutex& group = groups_[this->number_of(s) % groups_.size()];
    (reversed ? counting_ : group).lock();
    (reversed ? group : counting_).lock();
    ++changes_;
    counting_.unlock();
  }
  void unlock(slot& s) { groups_[this->number_of(s) % groups_.size()].unlock(); }

 private:
  std::array<std::mutex, 16> groups_;
  std::mutex counting_;
  std::uint64_t changes_ = 0;
};

template <media::medium Medium>
using deadlock = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<deadlock>();

}  // namespace
}  // namespace pmlab::toys
