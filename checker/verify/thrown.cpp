// What the code that is verified throws, in words.
#include "checker/verify/thrown.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/shared_text.hpp"
#include "checker/verify/silent_stdout.hpp"
#include "checker/verify/unable.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <typeinfo>

#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

// The text of a constructor's exception, in memory that its process and this one map.
using constructor_text = shared_text<4096>;
constructor_text* of_constructor = nullptr;

std::string type_of_thrown() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return {};
  int failed = 0;
  char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
  std::string text = std::string("an object of type ") + (failed == 0 ? name : type->name());
  std::free(name);
  return text;
}

}  // namespace

std::string text_of_thrown() {
  if (std::current_exception() == nullptr) return {};
  try {
    throw;
  } catch (const std::exception& e) {
    return thrown_text(e);
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text;
  } catch (...) {
    return type_of_thrown();
  }
}

void report_ends_by_code() {
  std::set_terminate([] {
    simulator::machine& machine = simulator::the_machine();
    machine.watch(false);
    if (const std::string what = text_of_thrown(); !what.empty()) machine.violated("an operation throws: " + what);
    std::abort();
  });
  const auto on_exit = [] {
    simulator::machine& machine = simulator::the_machine();
    machine.watch(false);
    machine.violated("an operation ends the process (exit)");
  };
  std::atexit(on_exit);
  std::at_quick_exit(on_exit);
}

void check_constructors(const std::string& path) {
  using namespace std::chrono_literals;
  void* const area =
      ::mmap(nullptr, sizeof(constructor_text), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return;
  of_constructor = ::new (area) constructor_text;
  std::fflush(nullptr);
  const child_end end = in_child_process(60s, [&]() -> std::string {
    lose_stdout();
    std::set_terminate([] {
      of_constructor->put(text_of_thrown());
      std::abort();
    });
    static_cast<void>(::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL));
    return {};
  });
  const std::string said = end.end == child_end::how::threw ? end.text : of_constructor->get();
  of_constructor = nullptr;
  ::munmap(area, sizeof(constructor_text));
  // What does not end in time is judged where it is loaded.
  if (end.end == child_end::how::returned || end.end == child_end::how::late) return;
  const std::string how = !said.empty()                          ? "throws: " + said
                          : end.end == child_end::how::signalled ? "dies of " + std::string(::strsignal(end.signal))
                                                                 : "ends the process (exit)";
  throw error("cannot load " + path + ": a constructor of its statics " + how, "mend it, or leave it out");
}

}  // namespace pmlab::verify
