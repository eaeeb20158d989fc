// Layer norm.

// One warp per row, the row in registers; columns <= 32 * WIDE * CHUNKS = 1024 and a multiple of WIDE.
#define CHUNKS (32 / WIDE)
#define EACH_CHUNK                                        \
  _Pragma("unroll") for (int c = 0; c < CHUNKS; c++) if (int at = (c * 32 + lane) * WIDE; at < columns)
#define EACH_WORD _Pragma("unroll") for (int i = 0; i < WIDE; i++)

extern "C" __global__ void __launch_bounds__(256, NARROW ? 5 : 4) layer_norm(const T* x, ll x_model, const T* residual, ll residual_model, const float* bias, const float* gain, const float* shift, ll parameters_model, T* out, ll out_model, T* normal, ll normal_model, float* inverse, ll inverse_model, int rows, int columns, float epsilon) {
  int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (row >= rows) return;
  ll start = (ll)row * columns, model = blockIdx.y;
  float value[CHUNKS][WIDE], sum = 0, squares = 0;
  EACH_CHUNK {
    load<WIDE>(x + model * x_model + start + at, value[c]);
    if (residual) {
      float other[WIDE];
      load<WIDE>(residual + model * residual_model + start + at, other);
      EACH_WORD value[c][i] += other[i];
    }
    if (bias) {
      float added[WIDE];
      load_parameters<WIDE>(bias + model * parameters_model + at, added);
      EACH_WORD value[c][i] += added[i];
    }
    EACH_WORD sum += value[c][i];
  }
  float mean = warp_sum(sum) / columns;
  EACH_CHUNK EACH_WORD { float gap = value[c][i] - mean; squares += gap * gap; }
  float scale = rsqrtf(warp_sum(squares) / columns + epsilon);
  EACH_CHUNK {
    float result[WIDE], gains[WIDE], shifts[WIDE];
    load_parameters<WIDE>(gain + model * parameters_model + at, gains);
    load_parameters<WIDE>(shift + model * parameters_model + at, shifts);
    EACH_WORD {
      value[c][i] = (value[c][i] - mean) * scale;
      result[i] = value[c][i] * gains[i] + shifts[i];
    }
    store<WIDE>(normal + model * normal_model + start + at, value[c]);
    store<WIDE>(out + model * out_model + start + at, result);
  }
  if (lane == 0) inverse[model * inverse_model + row] = scale;
}

// The gradient of the input, and in the same pass the sums by column of d * normal, of d and of dx: gradients of gain and shift, and
// of a bias before the norm. A warp takes every so many-th row; the sums of a block lie at its place among `splits` in each of three arrays.
extern "C" __global__ void __launch_bounds__(128, 2) layer_norm_backward_sums(const T* d, ll d_model, const T* normal, ll normal_model, const float* inverse, ll inverse_model, const float* gain, ll parameters_model, T* dx, ll dx_model, float* sums, ll sums_array, ll sums_model, int rows, int columns) {
  __shared__ float shared[4][32 * WIDE];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, step = gridDim.x * 4;
  ll model = blockIdx.y;
  d += model * d_model; normal += model * normal_model; dx += model * dx_model; gain += model * parameters_model;
  float total[3][CHUNKS][WIDE] = {};
  // The next row is on its way while this one is computed.
  Vector<WIDE> next[2][CHUNKS];
  auto fetch_row = [&](int row) {
    ll start = (ll)min(row, rows - 1) * columns;
    EACH_CHUNK { next[0][c] = *(const Vector<WIDE>*)(d + start + at); next[1][c] = *(const Vector<WIDE>*)(normal + start + at); }
  };
  fetch_row(blockIdx.x * 4 + warp);
  for (int row = blockIdx.x * 4 + warp; row < rows; row += step) {
    ll start = (ll)row * columns;
    float value[CHUNKS][WIDE], other[CHUNKS][WIDE], sum = 0, product = 0;
    EACH_CHUNK EACH_WORD { value[c][i] = widen(next[0][c].word[i]); other[c][i] = widen(next[1][c].word[i]); }
    fetch_row(row + step);
    EACH_CHUNK {
      float gains[WIDE];
      load_parameters<WIDE>(gain + at, gains);
      EACH_WORD {
        total[0][c][i] += value[c][i] * other[c][i];
        total[1][c][i] += value[c][i];
        value[c][i] *= gains[i];
        sum += value[c][i];
        product += value[c][i] * other[c][i];
      }
    }
    float mean = warp_sum(sum) / columns, slope = warp_sum(product) / columns, scale = inverse[model * inverse_model + row];
    EACH_CHUNK {
      float result[WIDE];
      EACH_WORD { result[i] = scale * (value[c][i] - mean - other[c][i] * slope); total[2][c][i] += result[i]; }
      store<WIDE>(dx + start + at, result);
    }
  }
  sums += model * sums_model + blockIdx.x * columns;
#pragma unroll
  for (int array = 0; array < 3; array++) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      __syncthreads();
      EACH_WORD shared[warp][i * 32 + lane] = total[array][c][i];
      __syncthreads();
      for (int k = threadIdx.x; k < 32 * WIDE; k += 128) {
        int at = (c * 32 + k % 32) * WIDE + k / 32;
        if (at < columns) sums[array * sums_array + at] = shared[0][k] + shared[1][k] + shared[2][k] + shared[3][k];
      }
    }
  }
}

// Rows of any width, one block per row.
#define EACH_COLUMN for (int k = threadIdx.x; k < columns; k += blockDim.x)

extern "C" __global__ void layer_norm_any(const T* x, ll x_model, const T* residual, ll residual_model, const float* bias, const float* gain, const float* shift, ll parameters_model, T* out, ll out_model, T* normal, ll normal_model, float* inverse, ll inverse_model, int columns, float epsilon) {
  ll start = (ll)blockIdx.x * columns, model = blockIdx.y;
  x += model * x_model; out += model * out_model; normal += model * normal_model;
  if (residual) residual += model * residual_model;
  if (bias) bias += model * parameters_model;
  float sum = 0, squares = 0, unused = 0;
  auto value = [&](int k) {
    float word = widen(x[start + k]) + (residual ? widen(residual[start + k]) : 0.f);
    return word + (bias ? bias[k] : 0.f);
  };
  EACH_COLUMN sum += value(k);
  block_sums(sum, unused);
  float mean = sum / columns;
  EACH_COLUMN { float gap = value(k) - mean; squares += gap * gap; }
  unused = 0;
  block_sums(squares, unused);
  float scale = rsqrtf(squares / columns + epsilon);
  EACH_COLUMN {
    float word = (value(k) - mean) * scale;
    ll column = k + model * parameters_model;
    normal[start + k] = narrow(word);
    out[start + k] = narrow(word * gain[column] + shift[column]);
  }
  if (threadIdx.x == 0) inverse[model * inverse_model + blockIdx.x] = scale;
}

extern "C" __global__ void layer_norm_backward_any(const T* d, ll d_model, const T* normal, ll normal_model, const float* inverse, ll inverse_model, const float* gain, ll parameters_model, T* dx, ll dx_model, int columns) {
  ll start = (ll)blockIdx.x * columns, model = blockIdx.y;
  d += model * d_model; normal += model * normal_model; dx += model * dx_model; gain += model * parameters_model;
  float sum = 0, product = 0;
  EACH_COLUMN {
    float word = widen(d[start + k]) * gain[k];
    sum += word;
    product += word * widen(normal[start + k]);
  }
  block_sums(sum, product);
  float mean = sum / columns, slope = product / columns, scale = inverse[model * inverse_model + blockIdx.x];
  EACH_COLUMN dx[start + k] = narrow(scale * (widen(d[start + k]) * gain[k] - mean - widen(normal[start + k]) * slope));
}

// Sums by column of d * normal and of d, split as bias_gradient is.
template <int N>
__device__ __forceinline__ void norm_gradient_any(const T* d, ll d_model, const T* normal, ll normal_model, float* gain, float* shift, ll g_model, int rows, int columns, int splits) {
  __shared__ float gains[16][32 * N + 1], shifts[16][32 * N + 1];
  int split = blockIdx.x % splits, first = blockIdx.x / splits * 32 * N, column = first + threadIdx.x * N;
  d += blockIdx.y * d_model;
  normal += blockIdx.y * normal_model;
  float a[N], b[N];
#pragma unroll
  for (int i = 0; i < N; i++) a[i] = b[i] = 0;
  if (column < columns) {
    for (int row = split * 16 + threadIdx.y; row < rows; row += 16 * splits) {
      float value[N], other[N];
      load<N>(d + (ll)row * columns + column, value);
      load<N>(normal + (ll)row * columns + column, other);
#pragma unroll
      for (int i = 0; i < N; i++) { a[i] += value[i] * other[i]; b[i] += value[i]; }
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++) { gains[threadIdx.y][threadIdx.x * N + i] = a[i]; shifts[threadIdx.y][threadIdx.x * N + i] = b[i]; }
  __syncthreads();
  for (int k = threadIdx.y * 32 + threadIdx.x; k < 32 * N; k += 512) {
    ll at = blockIdx.y * g_model + split * columns + first + k;
    if (first + k >= columns) continue;
    float total = 0, other = 0;
    for (int i = 0; i < 16; i++) { total += gains[i][k]; other += shifts[i][k]; }
    gain[at] = total;
    shift[at] = other;
  }
}
BOTH(norm_gradient, (const T* d, ll d_model, const T* normal, ll normal_model, float* gain, float* shift, ll g_model, int rows, int columns, int splits),
     (d, d_model, normal, normal_model, gain, shift, g_model, rows, columns, splits))
