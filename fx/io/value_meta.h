#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/io/export_schema.h"
#include "fx/io/symbolic_expr.h"

namespace fx::io {

/// An extent that is known, or an expression of symbols.
struct SymDim {
  std::int64_t value = 0;  ///< if expr is null; else what it was at export (-1: unknown)
  std::shared_ptr<const SymbolicExpr> expr;

  bool is_known() const { return expr == nullptr; }
  std::string str() const { return expr ? expr->str() : std::to_string(value); }
};

/// What an exported program claims of a value: node.meta()["val"] is a
/// std::shared_ptr<const ValueMeta>. A claim of the file: nothing may rely on it for memory safety.
struct ValueMeta {
  enum class Kind : std::uint8_t { kTensor, kInt, kFloat, kBool };
  Kind kind = Kind::kTensor;
  at::ScalarType dtype = at::kFloat;
  std::vector<SymDim> sizes;
  std::vector<SymDim> strides;
  SymDim storage_offset;
  at::Device device = at::kCPU;
  bool requires_grad = false;
  SymDim number;    ///< of kInt and kBool; of kFloat the expression, if it is one
  double real = 0;  ///< of kFloat: the value, if known, else what it was at export

  /// "f32[s77, 1, 8, 8]", "Sym(2*s77)", "SymFloat(zf0)", "i64[]".
  std::string str() const;
};
using ValueMetaPtr = std::shared_ptr<const ValueMeta>;

/// Turns the schema's metadata into ValueMeta; expressions with the same text are parsed once.
class ValueMetaReader {
 public:
  /// `label` starts error messages.
  explicit ValueMetaReader(std::string label) : label_(std::move(label)) {}

  /// @throws ImportError kBadExpression, kBadSchema
  ValueMetaPtr read(const schema::TensorMeta& meta, const std::string& name);
  ValueMetaPtr read(const schema::SymInt& number, const std::string& name);
  ValueMetaPtr read(const schema::SymBool& number, const std::string& name);
  ValueMetaPtr read(const schema::SymFloat& number, const std::string& name);

 private:
  SymDim dim(const schema::SymInt& number, const std::string& name);
  std::shared_ptr<const SymbolicExpr> expr(const std::string& text, const std::string& name);

  std::string label_;
  std::unordered_map<std::string, std::shared_ptr<const SymbolicExpr>> exprs_;
};

}  // namespace fx::io
