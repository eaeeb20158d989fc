// A classifier's last layer, of few classes, with the function before it: one kernel each way.

#define MOST_CLASSES 16
#define EACH_CLASS _Pragma("unroll") for (int c = 0; c < MOST_CLASSES; c++) if (c < classes)

// Sixteen lanes per sample: x becomes function(x + bias). Its product with the matrix gives the logits, which become w (softmax - one at the
// label), with loss and hit. The matrix is read 16 bytes at a time: tensors begin at multiples of 32.
#define HEAD_LANES 16
#define HEAD_WORDS 8
extern "C" __global__ void __launch_bounds__(128) head(T* x, ll x_model, const float* bias, const float* matrix, const float* head_bias, ll parameters_model, T* logits, ll logits_model, const u32* labels, const float* weights, float* losses, float* hits, int samples, int columns, int classes, int function) {
  extern __shared__ float4 head_matrix[];
  ll model = blockIdx.y, parameters = model * parameters_model;
  for (int k = threadIdx.x; k * 4 < columns * classes; k += blockDim.x) head_matrix[k] = ((const float4*)(matrix + parameters))[k];
  __syncthreads();
  const float* rows = (const float*)head_matrix;
  int sample = blockIdx.x * (blockDim.x / HEAD_LANES) + threadIdx.x / HEAD_LANES, lane = threadIdx.x % HEAD_LANES;
  if (sample >= samples) return;
  x += model * x_model + (ll)sample * columns;
  float sum[MOST_CLASSES] = {};
  for (int first = lane; first < columns; first += HEAD_LANES * HEAD_WORDS) {
    // All loads come before the first store, which they would otherwise wait for one by one.
    float value[HEAD_WORDS];
#pragma unroll
    for (int i = 0; i < HEAD_WORDS; i++) {
      int column = min(first + i * HEAD_LANES, columns - 1);
      value[i] = widen(x[column]) + bias[parameters + column];
    }
#pragma unroll
    for (int i = 0; i < HEAD_WORDS; i++) {
      int column = first + i * HEAD_LANES;
      if (column >= columns) break;
      T word = narrow(apply(value[i], function));
      x[column] = word;
      EACH_CLASS sum[c] += widen(word) * rows[column * classes + c];
    }
  }
  u32 mask = group_mask(HEAD_LANES);
  ll place = model * samples + sample;
  u32 label = labels[place];
  float weight = weights[place], most = -1e30f, at_label = 0, total = 0;
  int best = 0;
  EACH_CLASS {
    sum[c] = group_sum(sum[c], HEAD_LANES, mask) + head_bias[parameters + c];
    if (sum[c] > most) { most = sum[c]; best = c; }
    if (c == label) at_label = sum[c];
  }
  EACH_CLASS { float logit = sum[c]; sum[c] = expf(logit - most); total += sum[c]; }
  logits += model * logits_model + (ll)sample * classes;
  EACH_CLASS if (c % HEAD_LANES == lane) logits[c] = narrow(weight * (sum[c] / total - (c == label ? 1.f : 0.f)));
  if (lane == 0) {
    losses[place] = logf(total) + most - at_label;
    hits[place] = best == (int)label ? 1.f : 0.f;
  }
}

// The gradients of the matrix, of both biases and of x before the function, from d of the logits. Block (32, 16): a thread takes one
// column of every 16th sample. The bias of the logits is one more row of the matrix, whose x is always 1.
extern "C" __global__ void __launch_bounds__(512, 2) head_backward(const T* __restrict__ x, ll x_model, const T* __restrict__ d, ll d_model, const float* matrix, ll parameters_model, T* __restrict__ dx, ll dx_model, float* matrix_gradient, float* head_bias_gradient, float* bias_gradient, int samples, int columns, int classes, int function) {
  __shared__ float sums[MOST_CLASSES + 1][16][33];
  ll model = blockIdx.y, parameters = model * parameters_model;
  int first = blockIdx.x * 32, column = first + threadIdx.x;
  float weight[MOST_CLASSES] = {}, total[MOST_CLASSES] = {}, total_dx = 0;
  if (column < columns) { EACH_CLASS weight[c] = matrix[parameters + column * classes + c]; }
  if (column <= columns) {
#pragma unroll 4
    for (int sample = threadIdx.y; sample < samples; sample += 16) {
      const T* row = d + model * d_model + sample * classes;
      float value = column < columns ? widen(x[model * x_model + (ll)sample * columns + column]) : 1.f, sum = 0;
      EACH_CLASS { float word = widen(row[c]); total[c] += word * value; sum += word * weight[c]; }
      if (column == columns) continue;
      T word = narrow(sum * slope(value, function));
      dx[model * dx_model + (ll)sample * columns + column] = word;
      total_dx += widen(word);
    }
  }
  EACH_CLASS sums[c][threadIdx.y][threadIdx.x] = total[c];
  sums[classes][threadIdx.y][threadIdx.x] = total_dx;
  __syncthreads();
  for (int k = threadIdx.y * 32 + threadIdx.x; k < 32 * (classes + 1); k += 512) {
    int c = k / 32, at = first + k % 32;
    float sum = 0;
    for (int i = 0; i < 16; i++) sum += sums[c][i][k % 32];
    if (at < columns) (c < classes ? matrix_gradient + at * classes + c : bias_gradient + at)[parameters] = sum;
    else if (at == columns && c < classes) head_bias_gradient[parameters + c] = sum;
  }
}
