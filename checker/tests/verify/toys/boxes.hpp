// Rules whose values lie in blocks of their own: every change allocates one and releases the one before.
#pragma once

#include "slot_map.hpp"

namespace pmlab::toys {

struct alignas(media::cache_line_bytes) box {
  word value{0};
};

template <media::medium Medium>
class boxed_rules : public plain_rules<Medium> {
 public:
  using plain_rules<Medium>::plain_rules;
  using publication = typename Medium::publication;

  [[nodiscard]] box& box_of(slot& s) {
    return *this->medium_.resolve(media::pointer<box>(s.value.load(std::memory_order_acquire)));
  }
  [[nodiscard]] std::uint64_t value(slot& s) { return box_of(s).value.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t held(slot& /*s*/) { return sizeof(box); }

  bool put(slot& s, std::uint64_t value) {
    publication change(this->medium_);
    box* const made = make(change, value);
    if (made == nullptr) return false;
    change.store(s.value, this->medium_.locate(made).word());
    change.store(s.live, 1);
    change.commit();
    return true;
  }
  bool set(slot& s, std::uint64_t value) {
    publication change(this->medium_);
    box* const made = make(change, value);
    if (made == nullptr) return false;
    change.release(&box_of(s), sizeof(box));
    change.store(s.value, this->medium_.locate(made).word());
    change.commit();
    return true;
  }
  void take(slot& s) {
    publication change(this->medium_);
    change.release(&box_of(s), sizeof(box));
    change.store(s.live, 0);
    change.commit();
  }

 protected:
  box* make(publication& change, std::uint64_t value) {
    box* const made = media::create<box>(change);
    if (made == nullptr) return nullptr;
    made->value.store(value, std::memory_order_relaxed);
    media::persist(this->medium_, *made);
    return made;
  }
};

}  // namespace pmlab::toys
