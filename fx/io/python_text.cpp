#include "fx/io/python_text.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "fx/base/error.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

using Op = SymbolicExpr::Op;

// Names of sources while the expression is read: no name of an expression starts so.
constexpr std::string_view kSource = "_source_";

// Reads what stands for a number of an input: L['x'][0]['key'].size()[1].
class SourceReader {
 public:
  explicit SourceReader(std::string_view text) : text_(text) {}

  /// The length of the source that the text starts with; 0 if there is none.
  std::size_t read() {
    if (!accept("L") || !read_string_key()) return 0;
    while (read_string_key() || read_index()) {
    }
    if (accept(".storage_offset()")) return at_;
    if (!accept(".size()") && !accept(".stride()")) return 0;
    return read_index() ? at_ : 0;
  }

 private:
  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool read_string_key() {
    const std::size_t start = at_;
    if (accept("['")) {
      const auto plain = [](char c) {
        return c >= ' ' && c <= '~' && c != '\'' && c != '"' && c != '\\' && c != '{' && c != '}';
      };
      while (at_ < text_.size() && plain(text_[at_])) ++at_;
      if (accept("']")) return true;
    }
    at_ = start;
    return false;
  }
  bool read_index() {
    const std::size_t start = at_;
    if (accept("[")) {
      const std::size_t digits = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ > digits && at_ < digits + 6 && accept("]")) return true;
    }
    at_ = start;
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string_view infix(Op op) {
  switch (op) {
    case Op::kAdd:
      return " + ";
    case Op::kMul:
      return "*";
    case Op::kPow:
      return "**";
    case Op::kFloorDiv:
      return " // ";
    case Op::kMod:
      return " % ";
    case Op::kEq:
      return " == ";
    case Op::kNe:
      return " != ";
    case Op::kLt:
      return " < ";
    case Op::kLe:
      return " <= ";
    case Op::kGt:
      return " > ";
    case Op::kGe:
      return " >= ";
    case Op::kAnd:
      return " and ";
    case Op::kOr:
      return " or ";
    default:
      return {};
  }
}

// Python's text, with all parentheses. @returns false at what Python does not mean by the same
// name.
bool print(std::string& out, const SymbolicExpr& expr, const std::vector<std::string>& sources) {
  const auto list = [&](std::string_view open, std::string_view separator) {
    out += open;
    for (std::size_t i = 0; i < expr.args.size(); ++i) {
      if (i > 0) out += separator;
      if (!print(out, expr.args[i], sources)) return false;
    }
    out += ')';
    return true;
  };
  switch (expr.op) {
    case Op::kInteger:
      out += std::to_string(expr.value);
      return true;
    case Op::kBoolean:
      out += expr.value != 0 ? "True" : "False";
      return true;
    case Op::kSymbol: {
      if (!expr.name.starts_with(kSource)) return false;
      out += sources[std::stoul(expr.name.substr(kSource.size()))];
      return true;
    }
    case Op::kNot:
      return list("(not ", "");
    case Op::kMin:
      return list("min(", ", ");
    case Op::kMax:
      return list("max(", ", ");
    case Op::kOther:
      return (expr.name == "min" || expr.name == "max") && list(expr.name + "(", ", ");
    default:
      return !infix(expr.op).empty() && list("(", infix(expr.op));
  }
}

// Functions of sympy and torch are classes, with names as classes have them, but for two; Python's
// own are not.
void need_known_functions(const SymbolicExpr& expr) {
  if (expr.op == Op::kOther && expr.name != "floor" && expr.name != "ceiling" &&
      !std::isupper(static_cast<unsigned char>(expr.name[0])))
    throw ImportError(ErrorCode::kUnsupported,
                      "the expression of a size calls " + shown(expr.name) +
                          ", wanted a function of sympy or torch: Python would execute it");
  for (const SymbolicExpr& argument : expr.args) need_known_functions(argument);
}

}  // namespace

std::optional<std::string> rewritten_guard(std::string_view text) {
  if (text.size() > kMaxExpressionBytes || text.find(kSource) != std::string_view::npos)
    return std::nullopt;
  std::string replaced;
  std::vector<std::string> sources;
  for (std::size_t at = 0; at < text.size();) {
    const bool starts_name = at == 0 || !(std::isalnum(static_cast<unsigned char>(text[at - 1])) ||
                                          text[at - 1] == '_' || text[at - 1] == '.');
    const std::size_t length = starts_name ? SourceReader(text.substr(at)).read() : 0;
    if (length == 0) {
      replaced += text[at++];
      continue;
    }
    replaced += " " + std::string(kSource) + std::to_string(sources.size()) + " ";
    sources.emplace_back(text.substr(at, length));
    at += length;
  }
  try {
    std::string out;
    const SymbolicExpr expr = parse_symbolic_expr(replaced, "guard");
    if (!print(out, expr, sources)) return std::nullopt;
    return infix(expr.op).empty()
               ? out
               : out.substr(1, out.size() - 2);  // without the outermost parentheses
  } catch (const ImportError&) {
    // Something else than an expression.
  }
  return std::nullopt;
}

std::string expression_for_python(const SymbolicExpr& expr) {
  need_known_functions(expr);
  return expr.srepr();
}

}  // namespace fx::io
