#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace fx::io::testing {

/// Peak of resident memory of this process, in bytes; reset before it is measured.
class PeakMemory {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kIsExact = false;  ///< sanitizers keep what was freed
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  static constexpr bool kIsExact = false;
#else
  static constexpr bool kIsExact = true;
#endif
#else
  static constexpr bool kIsExact = true;
#endif

  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << "5";
    start_ = read("VmRSS:");
  }
  std::uint64_t growth() const {
    const std::uint64_t peak = read("VmHWM:");
    return peak > start_ ? peak - start_ : 0;
  }

 private:
  static std::uint64_t read(const std::string& key) {
    std::ifstream in("/proc/self/status");
    std::string word;
    std::uint64_t kilobytes = 0;
    while (in >> word)
      if (word == key && in >> kilobytes) return kilobytes * 1024;
    return 0;
  }
  std::uint64_t start_ = 0;
};

}  // namespace fx::io::testing
