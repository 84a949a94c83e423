// What holds for all pages of the guide.

#include <gtest/gtest.h>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

TEST(Pages, outputs_of_examples_are_those_of_the_programs) {
  for (const std::string& path : pages_in("guide")) {
    Page page(path);
    for (const std::string& name : page.output_names()) {
      // "example NAME: SECTION"
      if (!name.starts_with("example ")) continue;
      const std::size_t colon = name.find(": ");
      ASSERT_NE(colon, std::string::npos) << path << ": " << name;
      page.expect_output(name, example_output(name.substr(8, colon - 8), name.substr(colon + 2)));
    }
  }
}

}  // namespace
}  // namespace fx::docs_test
