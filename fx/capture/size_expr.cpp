#include "fx/capture/size_expr.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fx {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a % b < 0) != (b < 0));
}

// The solution of rows * x = values by elimination with pivots; nothing where the columns depend on
// each other. Inexact: whoever rounds it has to check.
std::optional<std::vector<double>> solve_linear(std::vector<std::vector<double>> rows,
                                                std::size_t columns) {
  for (std::size_t c = 0; c < columns; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c; r < rows.size(); ++r)
      if (std::abs(rows[r][c]) > std::abs(rows[pivot][c])) pivot = r;
    if (pivot >= rows.size() || std::abs(rows[pivot][c]) < 1e-9) return std::nullopt;
    std::swap(rows[c], rows[pivot]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r == c) continue;
      const double factor = rows[r][c] / rows[c][c];
      for (std::size_t k = c; k <= columns; ++k) rows[r][k] -= factor * rows[c][k];
    }
  }
  std::vector<double> solution;
  for (std::size_t c = 0; c < columns; ++c) solution.push_back(rows[c][columns] / rows[c][c]);
  return solution;
}

}  // namespace

std::int64_t SizeExpr::evaluate(const std::vector<std::int64_t>& sizes) const {
  std::int64_t sum = 0;
  for (const Term& term : terms) {
    std::int64_t product = term.factor;
    for (const std::size_t index : term.sizes) product *= sizes[index];
    sum += product;
  }
  return floor_div(sum, divisor);
}

std::string SizeExpr::str(const std::vector<std::string>& names) const {
  std::string sum;
  for (const Term& term : terms) {
    const bool is_negative = term.factor < 0;
    const std::int64_t factor = std::abs(term.factor);
    std::string text = term.sizes.empty() || factor != 1 ? std::to_string(factor) : "";
    for (const std::size_t index : term.sizes) text += (text.empty() ? "" : "*") + names[index];
    sum += sum.empty() ? (is_negative ? "-" : "") : (is_negative ? " - " : " + ");
    sum += text;
  }
  if (sum.empty()) sum = "0";
  if (divisor == 1) return sum;
  return (terms.size() > 1 ? "(" + sum + ")" : sum) + "//" + std::to_string(divisor);
}

SizeSolver::SizeSolver(std::vector<Samples> symbols)
    : num_symbols_(symbols.size()), sizes_(std::move(symbols)) {}

std::optional<std::size_t> SizeSolver::add_size(const Samples& samples) {
  if (std::ranges::count(samples, samples[0]) == std::ssize(samples)) return std::nullopt;
  if (std::ranges::find(sizes_, samples) != sizes_.end()) return std::nullopt;
  auto [found, is_new] = solved_by_symbols_.try_emplace(samples);
  if (is_new) found->second = fit_symbols(samples);
  if (found->second) return std::nullopt;
  sizes_.push_back(samples);
  return sizes_.size() - 1;
}

std::optional<SizeExpr> SizeSolver::solve(const Samples& values) {
  auto [found, is_new] = solved_by_symbols_.try_emplace(values);
  if (is_new) found->second = fit_symbols(values);
  if (found->second) return found->second;
  guessed_ = true;
  if (auto inner = fit_inner(values)) return inner;
  return fit_floor(values);
}

Samples SizeSolver::product(const std::vector<std::size_t>& factors) const {
  Samples out(sizes_[0].size(), 1);
  for (const std::size_t index : factors)
    for (std::size_t run = 0; run < out.size(); ++run) out[run] *= sizes_[index][run];
  return out;
}

std::optional<SizeExpr> SizeSolver::fit(const Features& features, const Samples& values) const {
  std::vector<Samples> columns;
  for (const auto& feature : features) columns.push_back(product(feature));
  std::vector<std::vector<double>> rows(values.size());
  for (std::size_t run = 0; run < values.size(); ++run) {
    for (const Samples& column : columns) rows[run].push_back(static_cast<double>(column[run]));
    rows[run].push_back(static_cast<double>(values[run]));
  }
  // One run more than coefficients, told apart by what the features are in them.
  std::vector<std::vector<double>> distinct;
  for (const auto& row : rows)
    if (std::ranges::find(distinct, row) == distinct.end()) distinct.push_back(row);
  if (distinct.size() <= features.size()) return std::nullopt;
  const auto solution = solve_linear(std::move(rows), features.size());
  if (!solution) return std::nullopt;
  for (const std::int64_t divisor : {1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64}) {
    SizeExpr expr;
    expr.divisor = divisor;
    bool holds = true;
    for (std::size_t i = 0; i < features.size() && holds; ++i) {
      const double scaled = (*solution)[i] * static_cast<double>(divisor);
      const double rounded = std::round(scaled);
      holds = std::abs(scaled - rounded) < 1e-4 && std::abs(rounded) < 1e15;
      if (holds && rounded != 0)
        expr.terms.push_back({static_cast<std::int64_t>(rounded), features[i]});
    }
    for (std::size_t run = 0; run < values.size() && holds; ++run) {
      std::int64_t sum = 0;
      for (const SizeExpr::Term& term : expr.terms) sum += term.factor * product(term.sizes)[run];
      holds = sum == values[run] * divisor;
    }
    if (holds) return expr;
  }
  return std::nullopt;
}

std::optional<SizeExpr> SizeSolver::fit_symbols(const Samples& values) const {
  std::vector<Features> candidates;
  for (std::size_t s = 0; s < num_symbols_; ++s) candidates.push_back({{s}, {}});
  if (num_symbols_ > 1) {
    Features affine;
    for (std::size_t s = 0; s < num_symbols_; ++s) affine.push_back({s});
    affine.push_back({});
    candidates.push_back(std::move(affine));
  }
  for (std::size_t s = 0; s < num_symbols_; ++s)
    for (std::size_t t = s; t < num_symbols_; ++t) {
      candidates.push_back({{s, t}, {}});
      candidates.push_back(s == t ? Features{{s, s}, {s}, {}} : Features{{s, t}, {s}, {t}, {}});
      for (std::size_t u = t; u < num_symbols_; ++u) candidates.push_back({{s, t, u}, {}});
    }
  for (const Features& features : candidates)
    if (auto found = fit(features, values)) return found;
  return std::nullopt;
}

// Nearest first: what a program computes sizes from is mostly what it made last.
std::optional<SizeExpr> SizeSolver::fit_inner(const Samples& values) const {
  const auto either = [&](const std::vector<std::size_t>& factors) {
    auto found = fit({factors}, values);
    return found ? found : fit({factors, {}}, values);
  };
  for (std::size_t i = sizes_.size(); i-- > num_symbols_;)
    if (auto found = either({i})) return found;
  for (std::size_t i = sizes_.size(); i-- > num_symbols_;)
    for (std::size_t j = 0; j <= i; ++j)
      if (auto found = either({i, j})) return found;
  return std::nullopt;
}

// Divisions by a constant that round down or up; else the only one that fits.
std::optional<SizeExpr> SizeSolver::fit_floor(const Samples& values) const {
  constexpr std::int64_t kMaxDivisor = 64;
  std::vector<SizeExpr> plain, others;
  for (std::size_t s = 0; s < num_symbols_; ++s)
    for (std::int64_t divisor = 2; divisor <= kMaxDivisor; ++divisor) {
      const std::int64_t least = values[0] * divisor - sizes_[s][0];
      for (std::int64_t added = least; added < least + divisor; ++added) {
        bool holds = true;
        for (std::size_t run = 0; run < values.size() && holds; ++run)
          holds = floor_div(sizes_[s][run] + added, divisor) == values[run];
        if (!holds) continue;
        SizeExpr expr{{{1, {s}}}, divisor};
        if (added != 0) expr.terms.push_back({added, {}});
        (added == 0 || added == divisor - 1 ? plain : others).push_back(std::move(expr));
      }
    }
  if (plain.size() == 1) return plain[0];
  if (plain.empty() && others.size() == 1) return others[0];
  return std::nullopt;
}

}  // namespace fx
