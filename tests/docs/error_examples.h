#pragma once

#include <functional>
#include <map>

namespace fx::docs_test {

/// A program that ends with an fx::Error.
using ErrorExample = std::function<void()>;

/// The examples by the number of the error that they meet.
const std::map<int, ErrorExample>& error_examples();

}  // namespace fx::docs_test
