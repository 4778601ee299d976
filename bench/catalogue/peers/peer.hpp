// A third-party container, as packaged, as a subject: for comparison with pmlab's indexes.
#pragma once

#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/subject.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::bench::peers {

// `Container(setup)` opens it; insert, update, find (and erase, scan where it has them) answer as pmlab's indexes do.
template <class Container>
class peer final : public subject {
 public:
  explicit peer(const subject_setup& setup) : setup_(setup), container_(std::make_unique<Container>(setup)) {}

  [[nodiscard]] std::string medium() const override { return Container::durable ? setup_.medium.text() : "dram"; }
  [[nodiscard]] bool durable() const override { return Container::durable; }
  work_done run(const work& w) override { return execute(*container_, w, no_hooks{}); }
  space_used space() override { return container_->space(); }
  std::optional<media::counts> accesses() override { return std::nullopt; }
  void reset_accesses() override {}

  void reopen() override {
    container_.reset();
    setup_.pool_bytes = 0;
    container_ = std::make_unique<Container>(setup_);
  }

 private:
  subject_setup setup_;
  std::unique_ptr<Container> container_;
};

template <class Container>
registration register_peer(index_description description) {
  description.peer = true;
  description.make = [](const subject_setup& setup) -> std::unique_ptr<subject> {
    return std::make_unique<peer<Container>>(setup);
  };
  return registration(std::move(description));
}

}  // namespace pmlab::bench::peers
