// A classifier's last layer, of few classes, with the function before it: one kernel each way. Both have few threads, so what they
// read is on its way before the first of it is used.

#define MOST_CLASSES 16
// Classes four at a time; what a row lacks to fours is zero.
#define EACH_FOUR _Pragma("unroll") for (int q = 0; q < MOST_CLASSES / 4; q++) if (q < fours)

// Classes as a row of the matrix has them, 0 for those that it lacks.
__device__ __forceinline__ void load_classes(const float* from, int classes, bool is_there, float4 (&to)[MOST_CLASSES / 4]) {
#pragma unroll
  for (int c = 0; c < MOST_CLASSES; c++) ((float*)to)[c] = is_there && c < classes ? from[c] : 0.f;
}

// Sixteen lanes per sample: x becomes function(x + bias). Its product with the matrix gives the logits, which become w (softmax - one at the
// label), with loss and hit. Rows of the matrix lie `pitch` fours apart in shared memory, an odd number, so that neighbouring lanes
// read from different banks.
#define HEAD_LANES 16
#define HEAD_WORDS 16
#define EACH_WORD _Pragma("unroll") for (int i = 0; i < HEAD_WORDS; i++)
#define HEAD_READ(first)                                     \
  EACH_WORD {                                                \
    int column = min((first) + i * HEAD_LANES, columns - 1); \
    value[i] = widen(x[column]) + bias[column];              \
  }
extern "C" __global__ void __launch_bounds__(128) head(T* x, ll x_model, const float* bias, const float* matrix, const float* head_bias, ll parameters_model, T* logits, ll logits_model, const u32* labels, const float* weights, float* losses, float* hits, int samples, int columns, int classes, int function) {
  extern __shared__ float4 rows[];
  int fours = (classes + 3) / 4, pitch = fours | 1;
  ll model = blockIdx.y, parameters = model * parameters_model;
  int lane = threadIdx.x % HEAD_LANES, own = blockIdx.x * (blockDim.x / HEAD_LANES) + threadIdx.x / HEAD_LANES;
  bool is_there = own < samples;
  ll sample = is_there ? own : 0, place = model * samples + sample;
  x += model * x_model + sample * columns, bias += parameters;
  u32 label = labels[place];
  float weight = weights[place], own_bias = lane < classes ? head_bias[parameters + lane] : 0.f, value[HEAD_WORDS];
  HEAD_READ(lane)
#pragma unroll 2
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    float4 row[MOST_CLASSES / 4];
    load_classes(matrix + parameters + column * classes, classes, true, row);
    EACH_FOUR rows[column * pitch + q] = row[q];
  }
  __syncthreads();
  float4 sum[MOST_CLASSES / 4] = {};
  for (int first = lane; first < columns; first += HEAD_LANES * HEAD_WORDS) {
    if (first > lane) { HEAD_READ(first) }
    if (function == RELU) { EACH_WORD value[i] = fmaxf(value[i], 0.f); } else { EACH_WORD value[i] = apply(value[i], function); }
    EACH_WORD {
      int column = first + i * HEAD_LANES;
      if (column >= columns) break;
      T word = narrow(value[i]);
      float rounded = widen(word);
      if (is_there) x[column] = word;
      EACH_FOUR {
        float4 row = rows[column * pitch + q];
        sum[q].x += rounded * row.x, sum[q].y += rounded * row.y, sum[q].z += rounded * row.z, sum[q].w += rounded * row.w;
      }
    }
  }
  // Each step halves the classes of which a lane has a sum, until lane c has that of class c.
  u32 mask = group_mask(HEAD_LANES);
  float* of_class = (float*)sum;
#pragma unroll
  for (int half = HEAD_LANES / 2; half; half >>= 1) {
    bool is_upper = lane & half;
#pragma unroll
    for (int c = 0; c < half; c++) {
      float kept = is_upper ? of_class[c + half] : of_class[c], given = is_upper ? of_class[c] : of_class[c + half];
      of_class[c] = kept + __shfl_xor_sync(mask, given, half);
    }
  }
  float logit = lane < classes ? of_class[0] + own_bias : -1e30f;
  float most = group_max(logit, HEAD_LANES, mask);
  float power = expf(logit - most), total = group_sum(power, HEAD_LANES, mask);
  float at_label = __shfl_sync(mask, logit, label, HEAD_LANES);
  int best = (__ffs(__ballot_sync(mask, logit == most) & mask) - 1) % HEAD_LANES;
  if (!is_there) return;
  if (lane < classes) logits[model * logits_model + sample * classes + lane] = narrow(weight * (power / total - (lane == label ? 1.f : 0.f)));
  if (lane == 0) {
    losses[place] = logf(total) + most - at_label;
    hits[place] = best == (int)label ? 1.f : 0.f;
  }
}

// The gradients of the matrix, of both biases and of x before the function, from d of the logits. Block (32, 16): a thread takes one
// column of every 16th sample. The bias of the logits is one more row of the matrix, whose x is always 1.
#define BACK_ROWS 16
#define BACK_SAMPLES 8
#define EACH_SAMPLE _Pragma("unroll") for (int i = 0; i < BACK_SAMPLES; i++) if (int sample = start + i * BACK_ROWS + threadIdx.y; true)
extern "C" __global__ void __launch_bounds__(512, 1) head_backward(const T* __restrict__ x, ll x_model, const T* __restrict__ d, ll d_model, const float* matrix, ll parameters_model, T* __restrict__ dx, ll dx_model, float* matrix_gradient, float* head_bias_gradient, float* bias_gradient, int samples, int columns, int classes, int function) {
  __shared__ float sums[MOST_CLASSES + 1][BACK_ROWS][33];
  __shared__ float4 rows[BACK_SAMPLES * BACK_ROWS][MOST_CLASSES / 4];
  int fours = (classes + 3) / 4, first = blockIdx.x * 32, column = first + threadIdx.x, thread = threadIdx.y * 32 + threadIdx.x;
  ll model = blockIdx.y, parameters = model * parameters_model;
  x += model * x_model, d += model * d_model, dx += model * dx_model;
  float4 weight[MOST_CLASSES / 4], total[MOST_CLASSES / 4] = {};
  load_classes(matrix + parameters + column * classes, classes, column < columns, weight);
  float total_dx = 0;
  for (int start = 0; start < samples; start += BACK_SAMPLES * BACK_ROWS) {
    float value[BACK_SAMPLES], slopes[BACK_SAMPLES];
    EACH_SAMPLE value[i] = column < columns && sample < samples ? widen(x[(ll)sample * columns + column]) : 1.f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < BACK_SAMPLES * BACK_ROWS * MOST_CLASSES / 512; i++) {
      int k = i * 512 + thread, c = k % MOST_CLASSES, sample = start + k / MOST_CLASSES;
      ((float*)rows)[k] = c < classes && sample < samples ? widen(d[sample * classes + c]) : 0.f;
    }
    if (function == RELU) { EACH_SAMPLE slopes[i] = value[i] > 0.f ? 1.f : 0.f; } else { EACH_SAMPLE slopes[i] = slope(value[i], function); }
    __syncthreads();
    EACH_SAMPLE {
      if (sample >= samples) break;
      float sum = 0;
      EACH_FOUR {
        float4 word = rows[i * BACK_ROWS + threadIdx.y][q];
        total[q].x += word.x * value[i], total[q].y += word.y * value[i], total[q].z += word.z * value[i], total[q].w += word.w * value[i];
        sum += word.x * weight[q].x + word.y * weight[q].y + word.z * weight[q].z + word.w * weight[q].w;
      }
      T word = narrow(sum * slopes[i]);
      if (column < columns) dx[(ll)sample * columns + column] = word;
      total_dx += widen(word);
    }
  }
#pragma unroll
  for (int c = 0; c < MOST_CLASSES; c++) if (c < classes) sums[c][threadIdx.y][threadIdx.x] = ((float*)total)[c];
  sums[classes][threadIdx.y][threadIdx.x] = total_dx;
  __syncthreads();
  for (int k = thread; k < 32 * (classes + 1); k += 512) {
    int c = k / 32, at = first + k % 32;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < BACK_ROWS; i++) sum += sums[c][i][k % 32];
    if (at < columns) (c < classes ? matrix_gradient + at * classes + c : bias_gradient + at)[parameters] = sum;
    else if (at == columns && c < classes) head_bias_gradient[parameters + c] = sum;
  }
}
