// What agents do besides mixing that step before they send, or have push-sum weights, over packed state [groups, agents, stride]. A thread takes one column of
// one agent that is computed here; the grid is (columns, groups * own).

// v <- v - step * factor * t, with a factor for each agent where there are any; without `awake` every agent is up.
extern "C" __global__ void descend(float* v, const float* t, half_word* narrow, const float* factors, const u32* awake, int agents, int first, int own, ll stride, float step_y, float step_z) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  int vector = own_vector(agents, first, own);
  if (column >= stride || (awake && !awake[vector % agents])) return;
  ll at = vector * stride + column;
  float step = vector < agents ? step_y : step_z;
  if (factors) step *= factors[vector % agents];
  float value = v[at] - step * t[at];
  v[at] = value;
  if (narrow) narrow[at] = to_bf16(value);
}

extern "C" __global__ void copy(float* to, half_word* narrow, const float* from, int agents, int first, int own, ll stride) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  ll at = own_vector(agents, first, own) * stride + column;
  to[at] = from[at];
  if (narrow) narrow[at] = to_bf16(from[at]);
}

// fresh <- fresh + keep * (last - again - c v), where c v is the part of the regulariser in the gradient `again` at v.
extern "C" __global__ void recur(float* fresh, const float* last, const float* again, const float* v, const float* strengths, int agents, int first, int own, ll stride, float keep) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  int vector = own_vector(agents, first, own);
  ll at = vector * stride + column;
  float part = v ? strengths[vector] * v[at] : 0.f;
  fresh[at] += keep * (last[at] - again[at] - part);
}

// d <- d + c v, then t <- t + d.
extern "C" __global__ void close_round(float* t, float* d, const float* v, const float* strengths, int agents, int first, int own, ll stride) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  int vector = own_vector(agents, first, own);
  ll at = vector * stride + column;
  float gradient = __fadd_rn(d[at], __fmul_rn(strengths[vector], v[at]));
  d[at] = gradient;
  t[at] = __fadd_rn(t[at], gradient);
}
