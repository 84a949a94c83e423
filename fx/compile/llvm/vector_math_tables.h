#pragma once

/// Coefficients, written by scripts/minimax.py --write. Polynomials: the highest power first.
// clang-format off
namespace fx::loops::tables {

/// Polynomials of degree `Degree` in x - c, one for each of up to 16 intervals of x >= 0, chosen by the low four bits of
/// the word (bits of the float x + shift) >> (23 - bits).
template <int Degree>
struct Pieces {
  int bits;
  float shift;
  float first;  ///< Where x + shift is below: the value is x plus the polynomial's.
  float last;   ///< From here on the value rounds to 1.
  float rows[Degree + 2][16];  ///< c, then the coefficients, the lowest power first
};

// scripts/minimax.py exp: e^r, relative, powers 0 to 6 on [-0.346753, 0.346753];
// largest error 2^-28.3.
inline constexpr double kExp[] = {
    0x1.6a4d5ap-10, 0x1.12398ep-7, 0x1.5558bp-5, 0x1.555492p-3, 0x1.fffffcp-2, 0x1p+0, 0x1p+0};

// scripts/minimax.py exp2: 2^r, relative, powers 0 to 6 on [-0.5, 0.5];
// largest error 2^-28.3.
inline constexpr double kExp2[] = {
    0x1.417a5cp-13, 0x1.5f0946p-10, 0x1.3b2dd2p-7, 0x1.c6af7ap-5, 0x1.ebfbdcp-3, 0x1.62e43p-1,
    0x1p+0};

// scripts/minimax.py expm1: (e^r - 1 - r) / r^2, relative to e^r - 1, powers 0 to 5 on [-0.288, 0.4058];
// largest error 2^-31.3.
inline constexpr double kExpm1[] = {
    0x1.b72f52p-13, 0x1.6cd92p-10, 0x1.11063cp-7, 0x1.55552cp-5, 0x1.55555ap-3, 0x1p-1};

// scripts/minimax.py log: log(1 + f) / f - 1, relative to log(1 + f) / f, powers 1 to 9 on [-0.25, 0.5];
// largest error 2^-27.6.
inline constexpr double kLog[] = {
    -0x1.718ed6p-5, 0x1.acce26p-4, -0x1.0d989cp-3, 0x1.28841ap-3, -0x1.54ee38p-3, 0x1.996978p-3,
    -0x1.000046p-2, 0x1.5555a4p-2, -0x1p-1, 0.0};

// scripts/minimax.py log2: log2(1 + f) / f - 1, relative to log2(1 + f) / f, powers 0 to 9 on [-0.25, 0.5];
// largest error 2^-26.2.
inline constexpr double kLog2[] = {
    -0x1.083e68p-4, 0x1.38502p-3, -0x1.89844p-3, 0x1.ad0566p-3, -0x1.eb757cp-3, 0x1.273e98p-2,
    -0x1.7155e6p-2, 0x1.ec71c8p-2, -0x1.715476p-1, 0x1.c551d8p-2};

// scripts/minimax.py log10: log10(1 + f) / f - 1/2, relative to log10(1 + f) / f, powers 0 to 9 on [-0.333333, 0.333333];
// largest error 2^-27.3.
inline constexpr double kLog10[] = {
    -0x1.cc4334p-5, 0x1.f9db18p-5, -0x1.b0f6ecp-5, 0x1.f04c12p-5, -0x1.28c0f6p-4, 0x1.64095ep-4,
    -0x1.bcb66cp-4, 0x1.2879eep-3, -0x1.bcb7b2p-3, -0x1.0d213ap-4};

// scripts/minimax.py sin: (sin r / r - 1) / r^2 by s = r^2, relative to sin r / r, powers 0 to 2 on [1e-09, 0.693096];
// largest error 2^-27.3.
inline constexpr double kSin[] = {
    -0x1.9865bcp-13, 0x1.11048cp-7, -0x1.55553ep-3};

// scripts/minimax.py cos: (1 - cos r) / r^2 by s = r^2, relative to cos r, powers 0 to 3 on [1e-09, 0.693096];
// largest error 2^-32.0.
inline constexpr double kCos[] = {
    -0x1.993858p-16, 0x1.6c09b8p-10, -0x1.555546p-5, 0x1p-1};

// scripts/minimax.py tan: (tan r / r - 1) / r^2 by s = r^2, relative to tan r / r, powers 0 to 6 on [1e-09, 0.693096];
// largest error 2^-28.0.
inline constexpr double kTan[] = {
    0x1.4e6ad6p-8, -0x1.77734cp-10, 0x1.8bab4ap-7, 0x1.549d78p-6, 0x1.bba9aep-5, 0x1.1108e6p-3,
    0x1.555572p-2};

// scripts/minimax.py tanh: tanh x, relative, degree 6 on 16 intervals of [0, 9.02], by 2 bits of x + 0.625;
// largest error 2^-27.2.
inline constexpr Pieces<6> kTanh = {
    2, 0x1.4p-1f, 0x1.8p-1f, 0x1.20a3d8p+3f, {
    {
    0x1.9dep+0f, 0x1.10f4p+1f, 0x1.4d8p+1f, 0x1.8e74p+1f, 0x1.f488p+1f, 0x1.36fcp+2f,
    0x1.79b4p+2f, 0x1.b6f8p+2f, 0x1.044386p+3f, 0.0f, 0x1.783p-3f, 0x1.435p-2f, 0x1.fdfp-2f,
    0x1.82ep-1f, 0x1.011p+0f, 0x1.41e8p+0f},
    {
    0x1.d92964p-1f, 0x1.f1cf0cp-1f, 0x1.fa715cp-1f, 0x1.fdfa96p-1f, 0x1.ff96d8p-1f,
    0x1.fff03ap-1f, 0x1.fffe0ap-1f, 0x1.ffffb6p-1f, 0x1.fffffap-1f, 0.0f, 0x1.74035p-3f,
    0x1.38fb14p-2f, 0x1.d7959cp-2f, 0x1.46e7c4p-1f, 0x1.86d36ap-1f, 0x1.b36232p-1f},
    {
    0x1.2aec02p-3f, 0x1.bfd35cp-5f, 0x1.61bae4p-6f, 0x1.02324cp-7f, 0x1.a47672p-10f,
    0x1.f8bae6p-13f, 0x1.f5ffdp-16f, 0x1.27feecp-18f, 0x1.7243cp-22f, 0.0f, 0x1.ef1b32p-1f,
    0x1.d02b62p-1f, 0x1.936904p-1f, 0x1.2f4674p-1f, 0x1.ab572ap-2f, 0x1.1b8924p-2f},
    {
    -0x1.143f48p-3f, -0x1.b369bp-5f, -0x1.5de404p-6f, -0x1.012d4ap-7f, -0x1.a425b2p-10f,
    -0x1.f8a74cp-13f, -0x1.f5fe5cp-16f, -0x1.27e036p-18f, -0x1.ace252p-23f, -0x1.4ed4a6p-25f,
    -0x1.67bd02p-3f, -0x1.1bbe12p-2f, -0x1.7391p-2f, -0x1.83464cp-2f, -0x1.4633dcp-2f,
    -0x1.e236f6p-3f},
    {
    0x1.37579ap-4f, 0x1.1213ccp-5f, 0x1.c85b78p-7f, 0x1.542cdp-8f, 0x1.1764ap-10f,
    0x1.5003f2p-13f, 0x1.4e62bep-16f, 0x1.8a8aaep-19f, 0x1.ed174ep-23f, -0x1.55542cp-2f,
    -0x1.295e0cp-2f, -0x1.bd8p-3f, -0x1.874952p-4f, 0x1.68a32ap-5f, 0x1.aa38b8p-4f,
    0x1.ba1256p-4f},
    {
    -0x1.9e03cep-6f, -0x1.e56f52p-7f, -0x1.b45678p-8f, -0x1.4ed862p-9f, -0x1.15c5dp-11f,
    -0x1.504d2ap-14f, -0x1.4de8ap-17f, -0x1.8f2a14p-20f, -0x1.448ab4p-21f, -0x1.57a60ap-13f,
    0x1.c81aaep-4f, 0x1.452eb8p-3f, 0x1.51d33p-3f, 0x1.9142eep-4f, 0x1.b67d5p-6f, -0x1.b1c962p-7f},
    {
    0x1.f12882p-11f, 0x1.2273cep-8f, 0x1.3ecbfep-9f, 0x1.057c3cp-10f, 0x1.cb95bp-13f,
    0x1.17d0cap-15f, 0x1.15bf8p-18f, 0x1.447882p-21f, 0x1.a8e03cp-25f, 0x1.167e5cp-3f,
    0x1.77e9eap-4f, 0x1.997b4cp-5f, -0x1.ac7658p-6f, -0x1.038ap-4f, -0x1.77ca56p-5f,
    -0x1.32c70ap-6f},
    {
    0x1.167546p-8f, -0x1.162d58p-11f, -0x1.4fe186p-11f, -0x1.3f20e8p-12f, -0x1.429f2cp-14f,
    -0x1.68a7cp-17f, -0x1.828948p-20f, -0x1.517d86p-23f, 0x1.abc6e4p-22f, -0x1.3fd2fap-6f,
    -0x1.db7c96p-5f, -0x1.7463bep-5f, -0x1.a064dp-5f, -0x1.89cb52p-11f, 0x1.2ebd7ep-6f,
    0x1.a51a48p-7f},
    }};

// scripts/minimax.py erf: erf x, relative, degree 5 on 15 intervals of [0, 3.99], by 3 bits of x + 1.5;
// largest error 2^-26.0.
inline constexpr Pieces<5> kErf = {
    3, 0x1.8p+0f, 0x1.ap+0f, 0x1.feb852p+1f, {
    {
    0x1.4248p-1f, 0x1.bbe8p-1f, 0x1.1e5cp+0f, 0x1.6258p+0f, 0x1.9fd8p+0f, 0x1.dffp+0f,
    0x1.107cp+1f, 0x1.2fc6p+1f, 0x1.61fcp+1f, 0x1.9ec8p+1f, 0x1.df38e2p+1f, 0.0f, 0.0f,
    0x1.7dep-3f, 0x1.3d1p-2f, 0x1.c048p-2f},
    {
    0x1.40d612p-1f, 0x1.8f488p-1f, 0x1.c5cd8ap-1f, 0x1.e6406cp-1f, 0x1.f4f022p-1f, 0x1.fbe50cp-1f,
    0x1.feaa34p-1f, 0x1.ff9872p-1f, 0x1.fff3f4p-1f, 0x1.ffff66p-1f, 0x1.fffffcp-1f, 0.0f, 0.0f,
    0x1.a9f524p-3f, 0x1.5aa7acp-2f, 0x1.db4b32p-2f},
    {
    0x1.84bba4p-1f, 0x1.107012p-1f, 0x1.4aa1eep-2f, 0x1.543196p-3f, 0x1.4a44ccp-4f,
    0x1.130f22p-5f, 0x1.8ded3ep-7f, 0x1.08c8d6p-8f, 0x1.1a3e8ep-11f, 0x1.047104p-15f,
    0x1.ef84fp-21f, 0.0f, 0x1.06eba8p-3f, 0x1.16fe8cp+0f, 0x1.06750cp+0f, 0x1.dcf92p-1f},
    {
    -0x1.e9603ep-2f, -0x1.d86888p-2f, -0x1.71d822p-2f, -0x1.d6e2a6p-3f, -0x1.0c3edcp-3f,
    -0x1.01d606p-4f, -0x1.a78c0ap-6f, -0x1.3a3p-7f, -0x1.85870cp-10f, -0x1.a40c24p-14f,
    -0x1.cb28b2p-19f, 0.0f, 0x1.4e2bf2p-22f, -0x1.a02cfap-3f, -0x1.450f6p-2f, -0x1.a19d0ap-2f},
    {
    -0x1.ae94aep-5f, 0x1.6db88ap-4f, 0x1.4b2938p-3f, 0x1.412754p-3f, 0x1.d6e2f4p-4f,
    0x1.146962p-4f, 0x1.0b6338p-5f, 0x1.c4fde8p-7f, 0x1.4eae7ap-9f, 0x1.b284a6p-13f,
    0x1.14eb9p-17f, 0.0f, -0x1.812b86p-2f, -0x1.5a1c7p-2f, -0x1.1acfe6p-2f, -0x1.882c7cp-3f},
    {
    0x1.6654ep-3f, 0x1.d65ba6p-4f, 0x1.eff2dp-6f, -0x1.01671cp-5f, -0x1.94b302p-5f,
    -0x1.59955p-5f, -0x1.acacbap-6f, -0x1.b2f16ep-7f, -0x1.a15e14p-9f, -0x1.55d474p-12f,
    -0x1.0ee4fap-16f, 0.0f, 0x1.33bbep-12f, 0x1.96223ap-4f, 0x1.3013e8p-3f, 0x1.6bd7dcp-3f},
    {
    -0x1.b2671p-6f, -0x1.10c016p-4f, -0x1.f457fcp-5f, -0x1.f6605cp-6f, -0x1.2e9ec6p-9f,
    0x1.730d92p-7f, 0x1.9796fep-7f, 0x1.11f9f4p-7f, 0x1.735abap-9f, 0x1.5ed7c4p-12f,
    0x1.5f985ap-16f, 0.0f, 0x1.c678bap-4f, 0x1.77604ep-4f, 0x1.dfa062p-5f, 0x1.89ea7ap-6f},
    }};

// scripts/minimax.py erfc: erfc x e^(x^2), relative, degree 6 on 16 intervals of [0, 10.1], by 2 bits of x + 0.75;
// largest error 2^-27.4.
inline constexpr Pieces<6> kErfc = {
    2, 0x1.8p-1f, 0x1.cp-1f, 0x1.433334p+3f, {
    {
    0x1.7d68p+0f, 0x1.ff48p+0f, 0x1.3ff4p+1f, 0x1.8198p+1f, 0x1.db7p+1f, 0x1.3004p+2f,
    0x1.719p+2f, 0x1.b0b8p+2f, 0x1.09e4p+3f, 0x1.34ab9ap+3f, 0x1.0ecp-4f, 0x1.813p-3f,
    0x1.885p-2f, 0x1.3d48p-1f, 0x1.c17p-1f, 0x1.218p+0f},
    {
    0x1.4b0254p-2f, 0x1.05d522p-2f, 0x1.afc986p-3f, 0x1.6d368p-3f, 0x1.2cda34p-3f, 0x1.dc5a36p-4f,
    0x1.8a7354p-4f, 0x1.522b04p-4f, 0x1.1425dep-4f, 0x1.dc9d34p-5f, 0x1.dbf126p-1f,
    0x1.a32d5ap-1f, 0x1.5c9f5p-1f, 0x1.1e44b2p-1f, 0x1.da8c6ep-2f, 0x1.93c55ep-2f},
    {
    -0x1.5247eap-3f, -0x1.b666bap-4f, -0x1.309ap-4f, -0x1.ba31b2p-5f, -0x1.2fe6c4p-5f,
    -0x1.810b12p-6f, -0x1.0999a4p-6f, -0x1.87d118p-7f, -0x1.062842p-7f, -0x1.8725ep-8f,
    -0x1.0167ap+0f, -0x1.a40d76p-1f, -0x1.369a78p-1f, -0x1.bddeacp-2f, -0x1.4255eap-2f,
    -0x1.e47cep-3f},
    {
    0x1.3c0c5ep-4f, 0x1.57846p-5f, 0x1.98ba6cp-6f, 0x1.0186dap-6f, 0x1.2a7226p-7f, 0x1.3170ecp-8f,
    0x1.60ef38p-9f, 0x1.c1720ap-10f, 0x1.ee5d34p-11f, 0x1.3f5c8ap-11f, 0x1.b9e992p-1f,
    0x1.542c7ap-1f, 0x1.cb3fd8p-2f, 0x1.283c52p-2f, 0x1.7f334p-3f, 0x1.03a77cp-3f},
    {
    -0x1.123d08p-5f, -0x1.fc9b52p-7f, -0x1.064f0cp-7f, -0x1.219b6ep-8f, -0x1.1d7c7ap-9f,
    -0x1.dbfc1ep-11f, -0x1.cef68p-12f, -0x1.fe8c1p-13f, -0x1.cef232p-14f, -0x1.0369fap-14f,
    -0x1.43be1ep-1f, -0x1.daca02p-2f, -0x1.28d64p-2f, -0x1.5dbadp-3f, -0x1.9b0dbap-4f,
    -0x1.fcf5d8p-5f},
    {
    0x1.bf15c2p-7f, 0x1.663faep-8f, 0x1.43885p-9f, 0x1.3b4c82p-10f, 0x1.0ab962p-11f,
    0x1.6ca6fp-13f, 0x1.2bf59ep-14f, 0x1.1f4b78p-15f, 0x1.ae6f6p-17f, 0x1.a29b9ap-18f,
    0x1.a49f16p-2f, 0x1.27859p-2f, 0x1.597c3cp-3f, 0x1.77c684p-4f, 0x1.9552f2p-5f, 0x1.cf292cp-6f},
    {
    -0x1.5d7552p-8f, -0x1.e787aap-10f, -0x1.83f6dp-11f, -0x1.4e4f54p-12f, -0x1.ef9cc4p-14f,
    -0x1.16f3bep-15f, -0x1.859cc8p-17f, -0x1.42214p-18f, -0x1.9714cp-20f, -0x1.5d3b14p-21f,
    -0x1.e7cb7cp-3f, -0x1.454a12p-3f, -0x1.7318a4p-4f, -0x1.7610ccp-5f, -0x1.7770f8p-6f,
    -0x1.89b7f8p-7f},
    {
    0x1.f40344p-10f, 0x1.3a2d1cp-11f, 0x1.bd98f8p-13f, 0x1.679ef8p-14f, 0x1.a39622p-16f,
    0x1.9d8d8cp-18f, 0x1.e5ce4cp-20f, 0x1.5eca92p-21f, 0x1.874d5cp-23f, 0x1.d939d8p-24f,
    0x1.04077ap-3f, 0x1.673b9p-4f, 0x1.7915ap-5f, 0x1.53b5fap-6f, 0x1.6ab944p-7f, 0x1.3ac1bp-8f},
    }};

// scripts/minimax.py sinh: (sinh r / r - 1) / r^2 by s = r^2, relative to sinh r / r, powers 0 to 2 on [1e-09, 0.231842];
// largest error 2^-33.4.
inline constexpr double kSinh[] = {
    0x1.a29458p-13, 0x1.110fd2p-7, 0x1.555556p-3};

// scripts/minimax.py cosh: (cosh r - 1) / r^2 by s = r^2, relative to cosh r, powers 0 to 2 on [1e-09, 0.231842];
// largest error 2^-29.5.
inline constexpr double kCosh[] = {
    0x1.6e6eap-10, 0x1.5553bcp-5, 0x1p-1};

// scripts/minimax.py atan: (atan z / z - 1) / z^2 by s = z^2, relative to atan z / z, powers 0 to 8 on [1e-09, 1];
// largest error 2^-28.5.
inline constexpr double kAtan[] = {
    -0x1.d4984ap-10, 0x1.64c1cep-7, -0x1.fdfc1cp-6, 0x1.da5ed4p-5, -0x1.58155ep-4, 0x1.c08f64p-4,
    -0x1.2420b6p-3, 0x1.9991e6p-3, -0x1.55553ep-2};

// scripts/minimax.py asin: (asin z / z - 1) / z^2 by s = z^2, relative to asin z / z, powers 0 to 4 on [1e-09, 0.25];
// largest error 2^-27.6.
inline constexpr double kAsin[] = {
    0x1.595c6p-5, 0x1.8c3e5p-6, 0x1.747bb8p-5, 0x1.330204p-4, 0x1.5555c8p-3};

// scripts/minimax.py atanh: (atanh z / z - 1) / z^2 by s = z^2, relative to atanh z / z, powers 0 to 3 on [1e-09, 0.0625];
// largest error 2^-32.0.
inline constexpr double kAtanh[] = {
    0x1.027b26p-3, 0x1.22e798p-3, 0x1.99a284p-3, 0x1.55554ep-2};

// scripts/minimax.py pow: log2(1 + f) / f, relative, in float64, powers 0 to 13 on [-0.25, 0.5];
// largest error 2^-38.5.
inline constexpr double kPow[] = {
    -0x1.087be3525f994p-5, 0x1.72d5d40ee4e17p-4, -0x1.0398acebea594p-3, 0x1.17bb88c710055p-3,
    -0x1.287217705cc8ap-3, 0x1.4786bf84cc30ep-3, -0x1.712f260bdcfabp-3, 0x1.a61ce4479e9bcp-3,
    -0x1.ec720c97a4456p-3, 0x1.2776bd11f21fbp-2, -0x1.715473b644babp-2, 0x1.ec709dcb7964dp-2,
    -0x1.715476540512ap-1, 0x1.71547652b7c34p+0};

}  // namespace fx::loops::tables
// clang-format on
