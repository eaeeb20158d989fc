// Biases, functions, dropout, sums by column and the loss.

#define IDENTITY 0
#define RELU 1
#define TANH 2
#define GELU 3

// The normal distribution up to x, and exp(-x²/2), which its density shares.
struct Normal { float below, bell; };
__device__ __forceinline__ Normal normal(float x) {
  Normal normal;
  normal.bell = __expf(-0.5f * x * x);
#if NARROW
  // Abramowitz and Stegun 7.1.26: within 1e-7, far below what bf16 shows, at half the instructions of erff.
  float t = __fdividef(1.f, 1.f + 0.23164189f * fabsf(x));
  float above = 0.5f * t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) * normal.bell;
  normal.below = x < 0.f ? above : 1.f - above;
#else
  normal.below = 0.5f * (1.f + erff(x * 0.70710678f));
#endif
  return normal;
}

__device__ __forceinline__ float apply(float x, int function) {
  switch (function) {
    case RELU: return fmaxf(x, 0.f);
    case TANH: return tanhf(x);
    case GELU: return x * normal(x).below;
    default: return x;
  }
}

// Derivative from the output (ReLU, tanh) or the input (GELU).
__device__ __forceinline__ float slope(float saved, int function) {
  switch (function) {
    case RELU: return saved > 0.f ? 1.f : 0.f;
    case TANH: return 1.f - saved * saved;
    case GELU: {
      Normal at = normal(saved);
      return at.below + saved * 0.39894228f * at.bell;
    }
    default: return 1.f;
  }
}

template <int N>
__device__ __forceinline__ void activate_any(const T* x, ll x_model, T* out, ll out_model, const float* bias, ll bias_model, int columns, ll words, int function) {
  ll at = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * N;
  if (at >= words) return;
  x += blockIdx.y * x_model + at;
  out += blockIdx.y * out_model + at;
  float value[N];
  load<N>(x, value);
  if (bias) {
    float added[N];
    load_parameters<N>(bias + blockIdx.y * bias_model + (u32)at % (u32)columns, added);
#pragma unroll
    for (int i = 0; i < N; i++) value[i] += added[i];
  }
#pragma unroll
  for (int i = 0; i < N; i++) value[i] = apply(value[i], function);
  store<N>(out, value);
}
BOTH(activate, (const T* x, ll x_model, T* out, ll out_model, const float* bias, ll bias_model, int columns, ll words, int function),
     (x, x_model, out, out_model, bias, bias_model, columns, words, function))

template <int N>
__device__ __forceinline__ void activate_backward_any(const T* saved, ll saved_model, T* d, ll d_model, const float* bias, ll bias_model, int columns, ll words, int function) {
  ll at = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * N;
  if (at >= words) return;
  d += blockIdx.y * d_model + at;
  float value[N], before[N];
  load<N>(d, value);
  load<N>(saved + blockIdx.y * saved_model + at, before);
  float added[N] = {};
  if (bias) load_parameters<N>(bias + blockIdx.y * bias_model + (u32)at % (u32)columns, added);
#pragma unroll
  for (int i = 0; i < N; i++) value[i] *= slope(before[i] + added[i], function);
  store<N>(d, value);
}
BOTH(activate_backward, (const T* saved, ll saved_model, T* d, ll d_model, const float* bias, ll bias_model, int columns, ll words, int function),
     (saved, saved_model, d, d_model, bias, bias_model, columns, words, function))

// Sums by column, optionally of the derivative of the function first, written back: one pass instead of two.
// Block (32, 16); a thread takes N neighbouring columns of every 16th row. Many rows are split between `splits` blocks, whose
// sums lie one after the other in `g`.
template <int N>
__device__ __forceinline__ void bias_gradient_any(T* d, ll d_model, const T* saved, ll saved_model, const float* bias, ll bias_model, int function, float* g, ll g_model, int rows, int columns, int splits) {
  __shared__ float partial[16][32 * N + 1];
  int split = blockIdx.x % splits, first = blockIdx.x / splits * 32 * N, column = first + threadIdx.x * N;
  d += blockIdx.y * d_model;
  if (saved) saved += blockIdx.y * saved_model;
  float sum[N];
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] = 0;
  if (column < columns) {
    float added[N] = {};
    if (bias) load_parameters<N>(bias + blockIdx.y * bias_model + column, added);
#pragma unroll 2
    for (int row = split * 16 + threadIdx.y; row < rows; row += 16 * splits) {
      ll at = (ll)row * columns + column;
      float value[N];
      load<N>(d + at, value);
      if (saved) {
        float before[N];
        load<N>(saved + at, before);
#pragma unroll
        for (int i = 0; i < N; i++) value[i] *= slope(before[i] + added[i], function);
        store<N>(d + at, value);
      }
#pragma unroll
      for (int i = 0; i < N; i++) sum[i] += value[i];
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++) partial[threadIdx.y][threadIdx.x * N + i] = sum[i];
  __syncthreads();
  for (int k = threadIdx.y * 32 + threadIdx.x; k < 32 * N; k += 512) {
    if (first + k >= columns) continue;
    float total = 0;
    for (int i = 0; i < 16; i++) total += partial[i][k];
    g[blockIdx.y * g_model + split * columns + first + k] = total;
  }
}
BOTH(bias_gradient, (T* d, ll d_model, const T* saved, ll saved_model, const float* bias, ll bias_model, int function, float* g, ll g_model, int rows, int columns, int splits),
     (d, d_model, saved, saved_model, bias, bias_model, function, g, g_model, rows, columns, splits))

// Adds up splits of up to three sums, which lie one behind the other.
extern "C" __global__ void sum_splits(const float* partial, float* first, float* second, float* third, ll g_model, int columns, int splits, int models) {
  int blocks = (columns + blockDim.x - 1) / blockDim.x, sum = blockIdx.x / blocks;
  int at = blockIdx.x % blocks * blockDim.x + threadIdx.x;
  if (at >= columns) return;
  partial += ((ll)sum * models + blockIdx.y) * splits * columns + at;
  float total = 0;
#pragma unroll 8
  for (int split = 0; split < splits; split++) total += partial[(ll)split * columns];
  (sum == 0 ? first : sum == 1 ? second : third)[blockIdx.y * g_model + at] = total;
}

extern "C" __global__ void clear(float* g, ll g_model, ll words) {
  ll at = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (at >= words) return;
  g += blockIdx.y * g_model + at;
  if (at + 4 <= words) *(float4*)g = make_float4(0, 0, 0, 0);
  else for (int i = 0; i < words - at; i++) g[i] = 0;
}

// The stream of fabswarm_shared::rng: draw number `at` of (seed + layer, model, round, dropout).
__device__ __forceinline__ u64 scramble(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

extern "C" __global__ void dropout(const T* x, ll x_model, T* out, ll out_model, ll words, double rate, float scale, const u32* key_words, u32 first_model, u32 layer) {
  const u64 gamma = 0x9e3779b97f4a7c15ull;
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  u64 seed = ((u64)key_words[1] << 32 | key_words[0]) + layer;
  u64 place = (u64)(first_model + blockIdx.y) << 32 | key_words[2];
  u64 key = scramble(scramble(seed + gamma * 8) ^ scramble(place + gamma));
  double uniform = (double)(scramble(key + gamma * (u64)(at + 1)) >> 11) * (1.0 / 9007199254740992.0);
  float value = widen(x[blockIdx.y * x_model + at]);
  out[blockIdx.y * out_model + at] = narrow(uniform < rate ? 0.f : value * scale);
}

// One warp per sample: loss and hit, and the logits become w (softmax - one at the label).
extern "C" __global__ void cross_entropy(T* logits, ll logits_model, const float* bias, ll bias_model, const u32* labels, const float* weights, float* losses, float* hits, int samples, int classes) {
  int sample = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (sample >= samples) return;
  T* row = logits + blockIdx.y * logits_model + (ll)sample * classes;
  if (bias) bias += blockIdx.y * bias_model;
  ll place = (ll)blockIdx.y * samples + sample;
  u32 label = labels[place];
  float weight = weights[place], largest = -1e30f, at_label = -1e30f;
  int best = 0x7fffffff;
  for (int k = lane; k < classes; k += 32) {
    float value = widen(row[k]) + (bias ? bias[k] : 0.f);
    if (value > largest) { largest = value; best = k; }
    if (k == label) at_label = value;
  }
  float most = warp_max(largest);
  at_label = warp_max(at_label);
  if (largest != most) best = 0x7fffffff;
  for (int i = 16; i; i >>= 1) best = min(best, __shfl_xor_sync(~0u, best, i));
  float sum = 0;
  for (int k = lane; k < classes; k += 32) sum += expf(widen(row[k]) + (bias ? bias[k] : 0.f) - most);
  sum = warp_sum(sum);
  for (int k = lane; k < classes; k += 32) {
    float p = expf(widen(row[k]) + (bias ? bias[k] : 0.f) - most) / sum;
    row[k] = narrow(weight * (p - (k == label ? 1.f : 0.f)));
  }
  if (lane == 0) {
    losses[place] = logf(sum) + most - at_label;
    hits[place] = best == (int)label ? 1.f : 0.f;
  }
}
