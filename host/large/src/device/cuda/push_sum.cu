// What methods with push-sum weights do besides mixing, over packed state [groups, agents, stride]. A thread takes one column of
// one agent that is computed here; where nothing else is said, the grid is (columns, groups * own).

// v <- v - step * factor * t, with a factor for each agent. The grid is (columns, groups * agents): what came from other hosts has to descend as well before it is mixed.
extern "C" __global__ void descend(float* v, const float* t, half_word* narrow, const float* factors, int agents, ll stride, float step_y, float step_z) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  int vector = blockIdx.y;
  ll at = vector * stride + column;
  float value = v[at] - (vector < agents ? step_y : step_z) * factors[vector % agents] * t[at];
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
