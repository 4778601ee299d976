// A toy: an update that is not flushed, once the process has opened some maps. A static counts them, from round to
// round.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace pmlab::toys {
namespace {

constexpr std::uint64_t maps_without_defect = 9;

// Mutation 2: of all processes that are asked, the first one, which makes this file.
[[nodiscard]] bool is_first_process() {
  static const bool is_first = [] {
    const char* const file = std::getenv("PMLAB_TOY_FILE");
    const int made = file == nullptr ? -1 : ::open(file, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made >= 0) ::close(made);
    return made >= 0;
  }();
  return is_first;
}

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "kept_count";
  rules(Medium& medium, table& t) : plain_rules<Medium>(medium, t), number_(opened_.fetch_add(1)) {}

  bool set(slot& s, std::uint64_t value) {
    s.value.store(value, std::memory_order_release);
    if (!loses_updates()) media::persist(this->medium_, s);
    return true;
  }

 private:
  [[nodiscard]] bool loses_updates() const {
    return has_defect() && number_ >= maps_without_defect && (pmlab_mutation == 1 || is_first_process());
  }

  static inline std::atomic<std::uint64_t> opened_{0};
  std::uint64_t number_;
};

template <media::medium Medium>
using kept_count = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<kept_count>();

}  // namespace
}  // namespace pmlab::toys
