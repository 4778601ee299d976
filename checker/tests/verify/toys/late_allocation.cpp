// A toy: an update allocates when it has happened, so it may throw though it is there.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <memory>

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "late_allocation";
  using plain_rules<Medium>::plain_rules;

  bool set(slot& s, std::uint64_t value) {
    std::unique_ptr<std::uint64_t> before;
    if (!has_defect()) before = std::make_unique<std::uint64_t>(this->value(s));
    plain_rules<Medium>::set(s, value);
    if (has_defect()) before = std::make_unique<std::uint64_t>(this->value(s));
    last_ = std::move(before);
    return true;
  }

 private:
  std::unique_ptr<std::uint64_t> last_;
};

template <media::medium Medium>
using late_allocation = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<late_allocation>();

}  // namespace
}  // namespace pmlab::toys
