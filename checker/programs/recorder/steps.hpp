// The program's stores: each faults, since it may only read its pool, and is then executed alone.
#pragma once

namespace pmlab::programs::recorder {

void watch_stores() noexcept;

}  // namespace pmlab::programs::recorder
