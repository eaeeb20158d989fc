// What every kernel file begins with. NARROW = 1: activations are bf16, otherwise f32; state is always f32.
// blockIdx.y is the model (agent of a group); every array comes with the distance from one model to the next, in words.
typedef long long ll;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short half_word;

// The vector of packed state that a block takes where the grid has those of `own` agents of every group, from number `first` on.
__device__ __forceinline__ int own_vector(int agents, int first, int own) {
  return blockIdx.y / own * agents + first + blockIdx.y % own;
}

__device__ __forceinline__ half_word to_bf16(float value) {
  half_word word;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(word) : "f"(value));
  return word;
}

#if NARROW
typedef half_word T;
#define WIDE 8
__device__ __forceinline__ float widen(T word) { return __uint_as_float((u32)word << 16); }
__device__ __forceinline__ T narrow(float value) { return to_bf16(value); }
#else
typedef float T;
#define WIDE 4
__device__ __forceinline__ float widen(T word) { return word; }
__device__ __forceinline__ T narrow(float value) { return value; }
#endif

// N consecutive words of T as floats; one 16-byte access when N is WIDE.
template <int N> struct alignas(N * sizeof(T)) Vector { T word[N]; };

template <int N> __device__ __forceinline__ void load(const T* from, float (&to)[N]) {
  Vector<N> words = *(const Vector<N>*)from;
#pragma unroll
  for (int i = 0; i < N; i++) to[i] = widen(words.word[i]);
}

template <int N> __device__ __forceinline__ void store(T* to, const float (&from)[N]) {
  Vector<N> words;
#pragma unroll
  for (int i = 0; i < N; i++) words.word[i] = narrow(from[i]);
  *(Vector<N>*)to = words;
}

// N consecutive parameters, 16 bytes at a time: tensors begin at multiples of 32 bytes. No kernel writes what it reads so.
template <int N> __device__ __forceinline__ void load_parameters(const float* from, float (&to)[N]) {
  if constexpr (N % 4) {
#pragma unroll
    for (int i = 0; i < N; i++) to[i] = __ldg(from + i);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      float4 four = __ldg((const float4*)(from + i));
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  }
}

// Over `lanes` neighbouring lanes of a warp, a power of two; all of them must be there.
__device__ __forceinline__ u32 group_mask(int lanes) {
  return ~0u >> (32 - lanes) << (threadIdx.x & 31 & -lanes);
}

__device__ __forceinline__ float group_sum(float value, int lanes, u32 mask) {
  for (int lane = lanes >> 1; lane; lane >>= 1) value += __shfl_xor_sync(mask, value, lane);
  return value;
}

__device__ __forceinline__ float group_max(float value, int lanes, u32 mask) {
  for (int lane = lanes >> 1; lane; lane >>= 1) value = fmaxf(value, __shfl_xor_sync(mask, value, lane));
  return value;
}

__device__ __forceinline__ float warp_sum(float value) { return group_sum(value, 32, ~0u); }
__device__ __forceinline__ float warp_max(float value) { return group_max(value, 32, ~0u); }

// Sums of two values over the block, whose size is a multiple of 32.
__device__ __forceinline__ void block_sums(float& a, float& b) {
  __shared__ float sums[64];
  a = warp_sum(a);
  b = warp_sum(b);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, warps = blockDim.x >> 5;
  __syncthreads();
  if (lane == 0) { sums[warp] = a; sums[32 + warp] = b; }
  __syncthreads();
  a = b = 0;
  for (int i = 0; i < warps; i++) { a += sums[i]; b += sums[32 + i]; }
}

__device__ __forceinline__ float sigmoid(float value) { return 1.f / (1.f + expf(-value)); }

#define NO_SAMPLE 0xffffffffu

// Every kernel with a template parameter is made twice: for single words and for 16 bytes at a time.
#define BOTH(name, parameters, arguments)                                             \
  extern "C" __global__ void name##_single parameters { name##_any<1> arguments; }    \
  extern "C" __global__ void name##_wide parameters { name##_any<WIDE> arguments; }
