// Attention in one kernel each way, in bf16 on tensor cores: scores and probabilities stay on the chip. A block takes one head of
// one sample, of up to TOKENS tokens and HEAD columns; absent ones are zero in shared memory. Warp w has the 16 rows from 16 w on.
#if NARROW
#define TOKENS 128
#define HEAD 64
// Words from one row to the next in shared memory, such that the eight rows of a matrix load lie in different banks.
#define PITCH (HEAD + 8)
#define SQUARE_PITCH (TOKENS + 8)
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < count; i++)

// Heads of rows that lie side by side: word (row, column) of a sample's head is at[model * m + sample * outer + head * inner + row * pitch + column].
struct Heads { ll model; int outer, inner, pitch; };

__device__ __forceinline__ ll place(Heads heads, int count) {
  return blockIdx.y * heads.model + (ll)(blockIdx.x / count) * heads.outer + blockIdx.x % count * heads.inner;
}

// The address that this lane gives for four 8 x 8 matrices of the 16 x 16 at (row, column): by columns, or by rows first.
__device__ __forceinline__ u32 by_columns(const T* tile, int pitch, int row, int column) {
  int lane = threadIdx.x & 31;
  return (u32)__cvta_generic_to_shared(tile + (row + (lane & 15)) * pitch + column + (lane >> 4) * 8);
}

__device__ __forceinline__ u32 by_rows(const T* tile, int pitch, int row, int column) {
  int lane = threadIdx.x & 31;
  return (u32)__cvta_generic_to_shared(tile + (row + (lane & 7) + (lane >> 4) * 8) * pitch + column + (lane & 8));
}

__device__ __forceinline__ void fetch(u32 (&to)[4], u32 from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

__device__ __forceinline__ void fetch_transposed(u32 (&to)[4], u32 from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

// c += a b for a of 16 x 16 and b of 16 x 8.
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 pair(float low, float high) { return (u32)to_bf16(high) << 16 | to_bf16(low); }
__device__ __forceinline__ float low_of(u32 words) { return __uint_as_float(words << 16); }
__device__ __forceinline__ float high_of(u32 words) { return __uint_as_float(words & 0xffff0000u); }

// Rows of a head as one of 256 threads takes them: eight columns of every 32nd row. All are on their way before the first is used.
struct HeadRows { uint4 words[TOKENS / 32]; };

__device__ __forceinline__ HeadRows take_rows(const T* from, int pitch, int sequence, int head) {
  HeadRows rows;
  int first = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
  EACH(i, TOKENS / 32) {
    bool is_there = first + i * 32 < sequence && column < head;
    rows.words[i] = is_there ? *(const uint4*)(from + (ll)(first + i * 32) * pitch + column) : make_uint4(0, 0, 0, 0);
  }
  return rows;
}

__device__ __forceinline__ u32 add_pair(u32 words, float low, float high) { return pair(low_of(words) + low, high_of(words) + high); }

// The rows into shared memory, with a bias by column where there is one.
__device__ __forceinline__ void put_rows(T* tile, HeadRows rows, const float* bias, int sequence, int head) {
  int first = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
  float added[8] = {};
  if (bias && column < head) load_parameters<8>(bias + column, added);
  EACH(i, TOKENS / 32) {
    uint4 words = rows.words[i];
    if (bias && first + i * 32 < sequence) {
      words.x = add_pair(words.x, added[0], added[1]), words.y = add_pair(words.y, added[2], added[3]);
      words.z = add_pair(words.z, added[4], added[5]), words.w = add_pair(words.w, added[6], added[7]);
    }
    *(uint4*)(tile + (first + i * 32) * PITCH + column) = words;
  }
}

// 16 rows of `tile` from `row` on take c, and go on to memory; no other warp uses these rows.
__device__ __forceinline__ void drain(T* tile, int row, const float (&c)[HEAD / 8][4], T* to, int pitch, int sequence, int head) {
  int lane = threadIdx.x & 31;
  T* own = tile + (row + lane / 4) * PITCH + lane % 4 * 2;
  __syncwarp();
  EACH(n, HEAD / 8) {
    *(u32*)(own + n * 8) = pair(c[n][0], c[n][1]);
    *(u32*)(own + 8 * PITCH + n * 8) = pair(c[n][2], c[n][3]);
  }
  __syncwarp();
  for (int k = lane; k < 16 * HEAD / 8; k += 32) {
    int at = row + k / (HEAD / 8), column = k % (HEAD / 8) * 8;
    if (at < sequence && column < head) *(uint4*)(to + (ll)at * pitch + column) = *(const uint4*)(tile + at * PITCH + column);
  }
}

// c = 16 rows of a from `row` on, times all rows of b.
__device__ __forceinline__ void multiply_rows(float (&c)[TOKENS / 8][4], const T* a, int row, const T* b) {
  EACH(n, TOKENS / 8) EACH(i, 4) c[n][i] = 0;
  EACH(k, HEAD / 16) {
    u32 left[4], right[4];
    fetch(left, by_columns(a, PITCH, row, k * 16));
    EACH(n, TOKENS / 16) {
      fetch(right, by_rows(b, PITCH, n * 16, k * 16));
      multiply(c[2 * n], left, right[0], right[1]);
      multiply(c[2 * n + 1], left, right[2], right[3]);
    }
  }
}

// c += a times the 16 rows of b from `row` on.
__device__ __forceinline__ void add_rows(float (&c)[HEAD / 8][4], const u32 (&a)[4], const T* b, int row) {
  EACH(n, HEAD / 16) {
    u32 right[4];
    fetch_transposed(right, by_columns(b, PITCH, row, n * 16));
    multiply(c[2 * n], a, right[0], right[1]);
    multiply(c[2 * n + 1], a, right[2], right[3]);
  }
}

// Over the four lanes that have one row.
__device__ __forceinline__ float row_sum(float value) { return group_sum(value, 4, ~0u); }
__device__ __forceinline__ float row_max(float value) { return group_max(value, 4, ~0u); }

// Probabilities of the warp's rows over the first `length` keys, as left operands of products.
__device__ __forceinline__ void probabilities(u32 (&p)[TOKENS / 16][4], float (&c)[TOKENS / 8][4], float alpha, int length) {
  int first = threadIdx.x % 4 * 2;
  EACH(half, 2) {
    float largest = -1e30f, sum = 0;
    EACH(n, TOKENS / 8) EACH(i, 2) if (n * 8 + first + i < length) largest = fmaxf(largest, c[n][2 * half + i]);
    largest = row_max(largest);
    EACH(n, TOKENS / 8) EACH(i, 2) {
      float& value = c[n][2 * half + i];
      value = n * 8 + first + i < length ? __expf(alpha * (value - largest)) : 0.f;
      sum += value;
    }
    float scale = 1.f / row_sum(sum);
    EACH(n, TOKENS / 8) p[n / 2][n % 2 * 2 + half] = pair(c[n][2 * half] * scale, c[n][2 * half + 1] * scale);
  }
}

extern "C" __global__ void __launch_bounds__(256, 2) attention(const T* q, const T* k, const T* v, const float* bias_q, const float* bias_k, const float* bias_v, ll parameters_model, ll in_model, int in_outer, int in_inner, int in_pitch, T* out, ll out_model, int out_outer, int out_inner, int out_pitch, const u32* lengths, float alpha, int heads, int sequence, int head) {
  extern __shared__ __align__(16) T tiles[];
  T *tile_q = tiles, *tile_k = tiles + TOKENS * PITCH, *tile_v = tiles + 2 * TOKENS * PITCH;
  ll from = place(Heads{in_model, in_outer, in_inner, in_pitch}, heads), to = place(Heads{out_model, out_outer, out_inner, out_pitch}, heads);
  ll added = blockIdx.y * parameters_model + blockIdx.x % heads * in_inner;
  int length = min(lengths[blockIdx.y * (gridDim.x / heads) + blockIdx.x / heads], (u32)sequence), row = threadIdx.x / 32 * 16;
  HeadRows rows_q = take_rows(q + from, in_pitch, sequence, head), rows_k = take_rows(k + from, in_pitch, sequence, head), rows_v = take_rows(v + from, in_pitch, sequence, head);
  put_rows(tile_q, rows_q, bias_q + added, sequence, head);
  put_rows(tile_k, rows_k, bias_k + added, sequence, head);
  put_rows(tile_v, rows_v, bias_v + added, sequence, head);
  __syncthreads();
  float scores[TOKENS / 8][4], c[HEAD / 8][4] = {};
  u32 p[TOKENS / 16][4];
  multiply_rows(scores, tile_q, row, tile_k);
  probabilities(p, scores, alpha, length);
  EACH(k, TOKENS / 16) add_rows(c, p[k], tile_v, k * 16);
  drain(tile_q, row, c, out + to, out_pitch, sequence, head);
}

// Words of the warp's rows, as a left operand has them, into the square at the same place.
__device__ __forceinline__ void keep(T* square, int row, const u32 (&words)[TOKENS / 16][4]) {
  int lane = threadIdx.x & 31;
  T* own = square + (row + lane / 4) * SQUARE_PITCH + lane % 4 * 2;
  EACH(k, TOKENS / 16) EACH(i, 4) *(u32*)(own + i % 2 * 8 * SQUARE_PITCH + k * 16 + i / 2 * 8) = words[k][i];
}

// c = the transposed square's 16 rows from `row` on, times b; where `row` is of keys.
__device__ __forceinline__ void multiply_square(float (&c)[HEAD / 8][4], const T* square, int row, const T* b) {
  EACH(n, HEAD / 8) EACH(i, 4) c[n][i] = 0;
  EACH(k, TOKENS / 16) {
    u32 left[4];
    fetch_transposed(left, by_rows(square, SQUARE_PITCH, k * 16, row));
    add_rows(c, left, b, k * 16);
  }
}

// Sums by column of the warp's rows of c.
__device__ __forceinline__ void sum_rows(float* sums, const float (&c)[HEAD / 8][4]) {
  int lane = threadIdx.x & 31;
  EACH(n, HEAD / 8) EACH(i, 2) {
    float sum = c[n][i] + c[n][2 + i];
    for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane < 4) sums[n * 8 + lane * 2 + i] = sum;
  }
}

// Gradients of query, key and value, and their sums by column and sample, which are gradients of biases.
extern "C" __global__ void __launch_bounds__(256, 2) attention_backward(const T* q, const T* k, const T* v, const float* bias_q, const float* bias_k, const float* bias_v, ll parameters_model, ll in_model, int in_outer, int in_inner, int in_pitch, const T* d, ll d_model, int d_outer, int d_inner, int d_pitch, T* dq, T* dk, T* dv, ll out_model, float* sums_q, float* sums_k, float* sums_v, ll sums_model, int sums_sample, const u32* lengths, float alpha, int heads, int sequence, int head) {
  extern __shared__ __align__(16) T tiles[];
  __shared__ float sums[3][TOKENS / 16][HEAD];
  T *tile_q = tiles, *tile_k = tiles + TOKENS * PITCH, *tile_v = tiles + 2 * TOKENS * PITCH, *tile_d = tiles + 3 * TOKENS * PITCH, *square = tiles + 4 * TOKENS * PITCH;
  ll from = place(Heads{in_model, in_outer, in_inner, in_pitch}, heads), to = place(Heads{out_model, in_outer, in_inner, in_pitch}, heads);
  ll added = blockIdx.y * parameters_model + blockIdx.x % heads * in_inner;
  int length = min(lengths[blockIdx.y * (gridDim.x / heads) + blockIdx.x / heads], (u32)sequence), warp = threadIdx.x / 32, row = warp * 16;
  HeadRows rows_q = take_rows(q + from, in_pitch, sequence, head), rows_k = take_rows(k + from, in_pitch, sequence, head), rows_v = take_rows(v + from, in_pitch, sequence, head);
  HeadRows rows_d = take_rows(d + place(Heads{d_model, d_outer, d_inner, d_pitch}, heads), d_pitch, sequence, head);
  put_rows(tile_q, rows_q, bias_q + added, sequence, head);
  put_rows(tile_k, rows_k, bias_k + added, sequence, head);
  put_rows(tile_v, rows_v, bias_v + added, sequence, head);
  put_rows(tile_d, rows_d, nullptr, sequence, head);
  __syncthreads();
  float scores[TOKENS / 8][4];
  u32 p[TOKENS / 16][4];
  multiply_rows(scores, tile_q, row, tile_k);
  probabilities(p, scores, alpha, length);
  keep(square, row, p);
  multiply_rows(scores, tile_d, row, tile_v);
  EACH(half, 2) {
    float sum = 0;
    EACH(n, TOKENS / 8) {
      u32 words = p[n / 2][n % 2 * 2 + half];
      sum += low_of(words) * scores[n][2 * half] + high_of(words) * scores[n][2 * half + 1];
    }
    sum = row_sum(sum);
    EACH(n, TOKENS / 8) {
      u32& words = p[n / 2][n % 2 * 2 + half];
      words = pair(alpha * low_of(words) * (scores[n][2 * half] - sum), alpha * high_of(words) * (scores[n][2 * half + 1] - sum));
    }
  }
  // From here on p has the scores' gradient, and rows of value's tile are each warp's own.
  __syncthreads();
  float c[HEAD / 8][4];
  multiply_square(c, square, row, tile_d);
  sum_rows(sums[2][warp], c);
  drain(tile_v, row, c, dv + to, in_pitch, sequence, head);
  EACH(n, HEAD / 8) EACH(i, 4) c[n][i] = 0;
  EACH(k, TOKENS / 16) add_rows(c, p[k], tile_k, k * 16);
  sum_rows(sums[0][warp], c);
  drain(tile_v, row, c, dq + to, in_pitch, sequence, head);
  __syncthreads();
  keep(square, row, p);
  __syncthreads();
  multiply_square(c, square, row, tile_q);
  sum_rows(sums[1][warp], c);
  drain(tile_v, row, c, dk + to, in_pitch, sequence, head);
  __syncthreads();
  int part = threadIdx.x / HEAD, column = threadIdx.x % HEAD;
  if (part >= 3 || column >= head) return;
  float total = 0;
  EACH(w, TOKENS / 16) total += sums[part][w][column];
  float* whole = part == 0 ? sums_q : part == 1 ? sums_k : sums_v;
  whole[blockIdx.y * sums_model + (ll)(blockIdx.x / heads) * sums_sample + blockIdx.x % heads * in_inner + column] = total;
}
#endif
