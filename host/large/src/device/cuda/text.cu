// Embeddings, attention's softmax and the first token.

extern "C" __global__ void embed(const u32* tokens, const float* words, const float* positions, const float* types, ll parameters_model, T* out, ll out_model, int rows, int sequence, int width) {
  ll row = blockIdx.x, model = blockIdx.y;
  const float* word = words + model * parameters_model + (ll)tokens[model * rows + row] * width;
  const float* position = positions + model * parameters_model + (row % sequence) * width;
  for (int k = threadIdx.x; k < width; k += blockDim.x) {
    float sum = word[k] + position[k] + (types ? types[model * parameters_model + k] : 0.f);
    out[model * out_model + row * width + k] = narrow(sum);
  }
}

// The order of these sums is the hardware's: the last bits of embedding gradients differ from run to run.
extern "C" __global__ void embed_backward(const T* d, ll d_model, const u32* tokens, float* words, float* positions, float* types, ll g_model, int rows, int sequence, int width) {
  ll row = blockIdx.x, model = blockIdx.y;
  ll word = model * g_model + (ll)tokens[model * rows + row] * width, position = model * g_model + (row % sequence) * width;
  for (int k = threadIdx.x; k < width; k += blockDim.x) {
    float value = widen(d[model * d_model + row * width + k]);
    atomicAdd(words + word + k, value);
    atomicAdd(positions + position + k, value);
    if (types) atomicAdd(types + model * g_model + k, value);
  }
}

// Bucket of the distance between two tokens; program/op.rs has the same.
__device__ __forceinline__ int bucket(int query, int key, int buckets, int furthest) {
  int half = buckets / 2, exact = half / 2;
  int side = key > query ? half : 0, distance = key > query ? key - query : query - key;
  if (distance < exact) return side + distance;
  float ratio = logf((float)distance / exact) / logf((float)furthest / exact);
  return side + min(exact + (int)(ratio * (half - exact)), half - 1);
}

// `lanes` lanes of a warp per row, N neighbouring scores per lane at a time: a short row takes part of a warp, so that no lane of
// it idles, a long one up to 1024 scores.
// A row that a lane takes at once has a form of its own, with registers for no more: more warps fit a multiprocessor.
#define EACH_SPAN _Pragma("unroll") for (int c = 0; c < SPANS; c++) if (int key = (c * lanes + lane) * N; key < sequence)

#define ALL_SPANS(name, parameters, arguments)                                                 \
  extern "C" __global__ void name##_single parameters { name##_any<1, 32> arguments; }         \
  extern "C" __global__ void name##_wide parameters { name##_any<WIDE, 32 / WIDE> arguments; } \
  extern "C" __global__ void name##_short parameters { name##_any<WIDE, 1> arguments; }

template <int N, int SPANS>
__device__ __forceinline__ void attention_softmax_any(T* scores, ll scores_model, const u32* lengths, const float* table, ll parameters_model, int buckets, int furthest, int rows, int heads, int sequence, int lanes) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
  if (row >= rows) return;
  u32 mask = group_mask(lanes);
  int query = row % sequence, head = row / sequence % heads, sample = row / sequence / heads;
  int length = min(lengths[(ll)blockIdx.y * (rows / sequence / heads) + sample], (u32)sequence);
  scores += blockIdx.y * scores_model + (ll)row * sequence;
  float value[SPANS][N], largest = -1e30f, sum = 0;
  EACH_SPAN {
    load<N>(scores + key, value[c]);
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (table) value[c][i] += table[blockIdx.y * parameters_model + bucket(query, key + i, buckets, furthest) * heads + head];
      if (key + i < length) largest = fmaxf(largest, value[c][i]);
    }
  }
  largest = group_max(largest, lanes, mask);
  EACH_SPAN {
#pragma unroll
    for (int i = 0; i < N; i++) {
      value[c][i] = key + i < length ? __expf(value[c][i] - largest) : 0.f;
      sum += value[c][i];
    }
  }
  float scale = 1.f / group_sum(sum, lanes, mask);
  EACH_SPAN {
#pragma unroll
    for (int i = 0; i < N; i++) value[c][i] *= scale;
    store<N>(scores + key, value[c]);
  }
}
ALL_SPANS(attention_softmax, (T* scores, ll scores_model, const u32* lengths, const float* table, ll parameters_model, int buckets, int furthest, int rows, int heads, int sequence, int lanes),
     (scores, scores_model, lengths, table, parameters_model, buckets, furthest, rows, heads, sequence, lanes))

template <int N, int SPANS>
__device__ __forceinline__ void attention_softmax_backward_any(const T* p, ll p_model, T* d, ll d_model, float* table, ll g_model, int buckets, int furthest, int rows, int heads, int sequence, int lanes) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
  if (row >= rows) return;
  u32 mask = group_mask(lanes);
  int query = row % sequence, head = row / sequence % heads;
  p += blockIdx.y * p_model + (ll)row * sequence;
  d += blockIdx.y * d_model + (ll)row * sequence;
  float value[SPANS][N], weight[SPANS][N], sum = 0;
  EACH_SPAN {
    load<N>(p + key, weight[c]);
    load<N>(d + key, value[c]);
#pragma unroll
    for (int i = 0; i < N; i++) sum += weight[c][i] * value[c][i];
  }
  sum = group_sum(sum, lanes, mask);
  EACH_SPAN {
#pragma unroll
    for (int i = 0; i < N; i++) {
      value[c][i] = weight[c][i] * (value[c][i] - sum);
      if (table) atomicAdd(table + blockIdx.y * g_model + bucket(query, key + i, buckets, furthest) * heads + head, value[c][i]);
    }
    store<N>(d + key, value[c]);
  }
}
ALL_SPANS(attention_softmax_backward, (const T* p, ll p_model, T* d, ll d_model, float* table, ll g_model, int buckets, int furthest, int rows, int heads, int sequence, int lanes),
     (p, p_model, d, d_model, table, g_model, buckets, furthest, rows, heads, sequence, lanes))

extern "C" __global__ void first_rows(const T* x, ll x_model, T* out, ll out_model, ll words, int sequence, int columns) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  out[blockIdx.y * out_model + at] = x[blockIdx.y * x_model + at / columns * sequence * columns + at % columns];
}

extern "C" __global__ void first_rows_backward(const T* d, ll d_model, T* dx, ll dx_model, ll words, int sequence, int columns) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  ll row = at / columns;
  dx[blockIdx.y * dx_model + at] = row % sequence ? narrow(0.f) : d[blockIdx.y * d_model + row / sequence * columns + at % columns];
}
