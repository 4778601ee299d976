// A toy: a recovery that is not deterministic: it reads two counts in one order or in the other.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <stdexcept>

namespace pmlab::toys {
namespace {

unsigned openings = 0;

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "unsteady_recovery";

  rules(Medium& medium, table& t) : plain_rules<Medium>(medium, t) {
    if (!has_defect()) return;
    const bool in_order = ++openings % 2 == 0;
    check(in_order ? t.header[0] : t.cells[0]);
    check(in_order ? t.cells[0] : t.header[0]);
  }

  bool put(slot& s, std::uint64_t value) {
    // Never written back: both are as uncertain as can be.
    for (word* const count : {this->table_.header.data(), this->table_.cells.data()}) count->store(count->load() + 1);
    return plain_rules<Medium>::put(s, value);
  }

 private:
  // True in every state.
  static void check(const word& count) {
    if (count.load() > slots) throw std::runtime_error("a count that was never stored");
  }
};

template <media::medium Medium>
using unsteady_recovery = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<unsteady_recovery>();

}  // namespace
}  // namespace pmlab::toys
