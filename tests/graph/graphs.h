#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fx/base/error.h"
#include "fx/graph/graph.h"

namespace fx {

using Names = std::vector<std::string>;

/// Names of the nodes in any range of Node& or Node*.
template <typename Range>
Names names(const Range& nodes) {
  Names out;
  for (auto&& node : nodes) {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(node)>>)
      out.emplace_back(node->name());
    else
      out.emplace_back(node.name());
  }
  return out;
}
inline Names names(const Graph& graph) { return names(graph.nodes()); }

/// Runs `statement`, which has to throw an Exception (a subclass of fx::Error) with this code and a
/// message that contains `part`.
#define EXPECT_FX_ERROR(statement, Exception, error_code, part)            \
  do {                                                                     \
    try {                                                                  \
      statement;                                                           \
      ADD_FAILURE() << "expected " #Exception ", nothing was thrown";      \
    } catch (const ::fx::Exception& error) {                               \
      EXPECT_EQ(error.code(), ::fx::ErrorCode::error_code)                 \
          << ::fx::error_info(error.code()).name << ": " << error.what();  \
      EXPECT_THAT(error.what(), ::testing::HasSubstr(part));               \
    } catch (const std::exception& error) {                                \
      ADD_FAILURE() << "expected " #Exception ", found: " << error.what(); \
    }                                                                      \
  } while (false)

}  // namespace fx
