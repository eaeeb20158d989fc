// What methods with push-sum weights do besides mixing, over packed state [groups, agents, stride]. A thread takes one column of
// one agent; grid (columns, groups * agents).

// v <- v - step * factor * t, with a factor for each agent.
extern "C" __global__ void descend(float* v, const float* t, half_word* narrow, const float* factors, int agents, ll stride, float step_y, float step_z) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  ll at = blockIdx.y * stride + column;
  float value = v[at] - ((int)blockIdx.y < agents ? step_y : step_z) * factors[blockIdx.y % agents] * t[at];
  v[at] = value;
  if (narrow) narrow[at] = to_bf16(value);
}

extern "C" __global__ void copy(float* to, half_word* narrow, const float* from, ll stride) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  ll at = blockIdx.y * stride + column;
  to[at] = from[at];
  if (narrow) narrow[at] = to_bf16(from[at]);
}

// fresh <- fresh + keep * (last - again - c v), where c v is the part of the regulariser in the gradient `again` at v.
extern "C" __global__ void recur(float* fresh, const float* last, const float* again, const float* v, const float* strengths, ll stride, float keep) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  ll at = blockIdx.y * stride + column;
  float part = v ? strengths[blockIdx.y] * v[at] : 0.f;
  fresh[at] += keep * (last[at] - again[at] - part);
}
