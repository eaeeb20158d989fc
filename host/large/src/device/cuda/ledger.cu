// The broadcast ledger over packed state [groups, agents, stride]; device/cpu/ledger.rs has the equations. A thread takes one
// column of one agent. Of those kernels that change nothing but the vectors of the agents that are computed here, the grid is
// (columns, groups * own).

// Index of what `agent` of the group of `vector` broadcast `age` rounds ago, where all groups have `vectors` vectors.
__device__ __forceinline__ ll history_at(u32 round, u32 age, int depth, int vectors, int vector, int agents, int agent, ll stride, ll column) {
  ll slot = (round + depth - age) % depth;
  return (slot * vectors + vector / agents * agents + agent) * stride + column;
}

extern "C" __global__ void record_broadcast(const float* v, const float* t, float* history_v, float* history_t, const u32* awake, const u32* round, int depth, int agents, int first, int own, ll stride) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  int vector = own_vector(agents, first, own), agent = vector % agents, vectors = gridDim.y / own * agents;
  ll at = vector * stride + column, now = history_at(round[0], 0, depth, vectors, vector, agents, agent, stride, column);
  history_v[now] = v[at];
  history_t[now] = awake[agent] ? t[at] : 0.f;
}

// m <- momentum * m + t; without `awake` every agent is up.
extern "C" __global__ void accumulate(float* m, const float* t, const u32* awake, int agents, int first, int own, ll stride, float momentum) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  int vector = own_vector(agents, first, own);
  if (column >= stride || (awake && !awake[vector % agents])) return;
  ll at = vector * stride + column;
  m[at] = momentum * m[at] + t[at];
}

// Without t only the mean is taken.
extern "C" __global__ void pull_received(float* v, const float* t, half_word* narrow, const float* history_v, const u32* ages, const u32* awake, const u32* round, int depth, int agents, int first, int own, ll stride, float step_y, float step_z) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  int vector = own_vector(agents, first, own), receiver = vector % agents, vectors = gridDim.y / own * agents;
  if (column >= stride || !awake[receiver]) return;
  ll at = vector * stride + column;
  float total = v[at], received = 1.f;
  for (int j = 0; j < agents; j++) {
    u32 age = ages[receiver * agents + j];
    if (!age) continue;
    received += 1.f;
    total += history_v[history_at(round[0], age - 1, depth, vectors, vector, agents, j, stride, column)];
  }
  float value = total / received;
  if (t) value -= (vector < agents ? step_y : step_z) * t[at];
  v[at] = value;
  if (narrow) narrow[at] = to_bf16(value);
}

// The grid is (columns, groups * agents): what waits for the agents of other hosts is kept here as well.
extern "C" __global__ void track_by_ledger(float* t, float* mass, float* fresh, const float* last, const float* v, const float* strengths, const float* history_t, const u32* ages, const u32* awake, const float* shares, const u32* round, int depth, int agents, int first, int own, ll stride) {
  ll column = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= stride) return;
  int vector = blockIdx.y, receiver = vector % agents, vectors = gridDim.y;
  bool is_own = receiver >= first && receiver < first + own;
  ll at = vector * stride + column;
  float value = 0.f;
  if (is_own) {
    value = t[at];
    if (awake[receiver]) {
      float newest = fresh[at];
      if (v) fresh[at] = newest += strengths[vector] * v[at];
      value = shares[receiver * agents + receiver] * value + newest - last[at];
    } else {
      fresh[at] = last[at];
    }
  }
  ll link = (ll)vector * (agents - 1) * stride + column;
  for (int j = 0; j < agents; j++) {
    if (j == receiver) continue;
    float share = shares[receiver * agents + j];
    u32 age = ages[receiver * agents + j];
    if (j < first || j >= first + own) {
      // What the receiver takes has come from the sender's host.
      if (is_own && age) {
        value += mass[link];
        mass[link] = 0.f;
      }
    } else if (is_own || share != 0.f) {
      float waiting = mass[link] + share * history_t[history_at(round[0], 0, depth, vectors, vector, agents, j, stride, column)];
      if (age) {
        float recent = 0.f;
        for (u32 past = 0; past < age - 1; past++)
          recent += share * history_t[history_at(round[0], past, depth, vectors, vector, agents, j, stride, column)];
        value += waiting - recent;
        waiting = recent;
      }
      mass[link] = waiting;
    }
    link += stride;
  }
  if (is_own) t[at] = value;
}
