// Samples into batches, learned weights of samples, and the upper level's scalar.

// Which samples each agent takes: rows of the schedule from `skip` on, and what they weigh.
struct BatchSource {
  const u32* rows;
  const float* base;
  const u32* labels;
  const float* logits;
  int schedule, skip, upper;
  float upper_sign;
};

// Label and weight of the block's sample, whose number it returns.
__device__ __forceinline__ u32 take(BatchSource source, u32* labels, float* weights) {
  ll from = (ll)blockIdx.y * source.schedule + source.skip + blockIdx.x, to = (ll)blockIdx.y * gridDim.x + blockIdx.x;
  u32 sample = source.rows[from];
  if (threadIdx.x == 0) {
    bool absent = sample == NO_SAMPLE, is_upper = source.skip + (int)blockIdx.x < source.upper;
    float factor = 1.f;
    if (is_upper) factor = source.upper_sign;
    else if (!absent && source.logits) factor = sigmoid(source.logits[sample]);
    labels[to] = absent ? 0 : source.labels[sample];
    weights[to] = absent ? 0.f : source.base[from] * factor;
  }
  return sample;
}

// One block per sample of the batch; grid (samples, models).
extern "C" __global__ void load_features(const u32* rows, const float* base, const u32* data_labels, const float* logits, int schedule, int skip, int upper, float upper_sign, u32* labels, float* weights, const float* data, T* out, int width) {
  u32 sample = take(BatchSource{rows, base, data_labels, logits, schedule, skip, upper, upper_sign}, labels, weights);
  T* to = out + ((ll)blockIdx.y * gridDim.x + blockIdx.x) * width;
  const float* from = data + (ll)sample * width;
  if (width % 4 == 0) {
    for (int k = threadIdx.x * 4; k < width; k += blockDim.x * 4) {
      float words[4] = {};
      if (sample != NO_SAMPLE) load_parameters<4>(from + k, words);
      store<4>(to + k, words);
    }
  } else {
    for (int k = threadIdx.x; k < width; k += blockDim.x) to[k] = narrow(sample == NO_SAMPLE ? 0.f : from[k]);
  }
}

// An absent sample still needs one real token: a softmax over none has no value.
extern "C" __global__ void load_tokens(const u32* rows, const float* base, const u32* data_labels, const float* logits, int schedule, int skip, int upper, float upper_sign, u32* labels, float* weights, const u32* data, const u32* data_lengths, u32* out, u32* lengths, int width) {
  u32 sample = take(BatchSource{rows, base, data_labels, logits, schedule, skip, upper, upper_sign}, labels, weights);
  ll place = (ll)blockIdx.y * gridDim.x + blockIdx.x, from = sample == NO_SAMPLE ? 0 : sample;
  for (int k = threadIdx.x; k < width; k += blockDim.x) out[place * width + k] = data[from * width + k];
  if (threadIdx.x == 0) lengths[place] = sample == NO_SAMPLE ? 1 : data_lengths[sample];
}

// The samples of the lower level are the last of either pass; that of z may lack the others.
extern "C" __global__ void step_logits(float* logits, const u32* rows, const float* base, int schedule, int upper, const float* losses_y, const float* losses_z, int samples_z, float step, float* m, float momentum) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, learned = schedule - upper;
  if (at >= learned) return;
  ll place = (ll)blockIdx.y * schedule + upper + at;
  u32 sample = rows[place];
  if (sample == NO_SAMPLE) return;
  float weight = sigmoid(logits[sample]);
  float gap = losses_y[place] - losses_z[(ll)(blockIdx.y + 1) * samples_z - learned + at];
  if (!m) {
    logits[sample] -= step * base[place] * weight * (1.f - weight) * gap;
    return;
  }
  m[sample] = momentum * m[sample] + base[place] * weight * (1.f - weight) * gap;
  logits[sample] -= step * m[sample];
}

// One block per agent.
extern "C" __global__ void norm_gap(const float* v, int agents, int first, ll stride, float* gradient, int x_stride, float scale) {
  int agent = first + blockIdx.x;
  const float *y = v + agent * stride, *z = v + (agents + agent) * stride;
  float a = 0, b = 0;
  for (ll k = threadIdx.x; k < stride; k += blockDim.x) { a += y[k] * y[k]; b += z[k] * z[k]; }
  block_sums(a, b);
  if (threadIdx.x == 0) gradient[(ll)agent * x_stride] = scale * (a - b);
}

extern "C" __global__ void decay_from(float* x, int x_stride, int agents, int groups, float* decay, float scale) {
  int agent = blockIdx.x * blockDim.x + threadIdx.x;
  if (agent >= agents) return;
  float strength = fmaxf(x[(ll)agent * x_stride], 0.f);
  x[(ll)agent * x_stride] = strength;
  for (int group = 0; group < groups; group++) decay[group * agents + agent] = scale * strength;
}

extern "C" __global__ void to_narrow(const float* from, half_word* to, ll words) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < words) to[at] = to_bf16(from[at]);
}

extern "C" __global__ void add_scaled(const float* from, float* to, ll words, float scale) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < words) to[at] += scale * from[at];
}
