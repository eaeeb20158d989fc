// Pull and push over packed state [groups, AGENTS, stride], in place: each word is read once and written once.
// Compiled for one number of agents, of which those from FIRST to LAST are computed here; of the others only what they sent is read.

#if !defined(AGENTS) || !defined(FIRST) || !defined(LAST)
#error AGENTS, FIRST and LAST must say for which agents
#endif

// Words of one agent that a thread takes at once. Among few agents a thread has those of all agents in registers; among many a tile of
// COLUMNS columns of all agents lies in shared memory.
#define LANE 4
struct alignas(LANE * 4) Lane { float word[LANE]; };
struct alignas(LANE * 2) Half { half_word word[LANE]; };
#define EACH_LANE _Pragma("unroll") for (int k = 0; k < LANE; k++)

// Reads words past the first-level cache, free to be moved before any write. Where the same thread writes the same words later, what it
// writes depends on what it read, so the read comes first.
__device__ __forceinline__ Lane stream_in(const float* from) {
  Lane lane;
  asm("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(lane.word[0]), "=f"(lane.word[1]), "=f"(lane.word[2]), "=f"(lane.word[3]) : "l"(from));
  return lane;
}

// What is added to the mixed words of vector `vector` at `at`: nothing without t.
struct Pull {
  const float* t;
  float step_y, step_z;
  half_word* narrow;  // the decisions in bf16, when matrix products read them so
  __device__ __forceinline__ Lane seed(int group, int, ll at) const {
    if (!t) return Lane{};
    Lane lane = stream_in(t + at);
    EACH_LANE lane.word[k] *= -(group ? step_z : step_y);
    return lane;
  }
  __device__ __forceinline__ void done(ll at, Lane lane) const {
    if (!narrow) return;
    Half half;
    EACH_LANE half.word[k] = to_bf16(lane.word[k]);
    *(Half*)(narrow + at) = half;
  }
};

struct Track {
  float* fresh;
  const float* last;
  const float* v;
  const float* strengths;
  __device__ __forceinline__ Lane seed(int group, int agent, ll at) const {
    Lane lane = stream_in(fresh + at), before = stream_in(last + at);
    if (v) {
      Lane decision = stream_in(v + at);
      float strength = strengths[group * AGENTS + agent];
      EACH_LANE lane.word[k] += strength * decision.word[k];
      *(Lane*)(fresh + at) = lane;
    }
    EACH_LANE lane.word[k] -= before.word[k];
    return lane;
  }
  __device__ __forceinline__ void done(ll, Lane) const {}
};


// State of one group in Device::mix_round. Sums that reading it makes on the host as well are not contracted, so that both have the same bits.
struct Round {
  float *v, *t;
  const float *d, *strengths;
  float* m;
  float step, momentum;
  int is_open;
  // Closes an open round: d <- d + c v, and t <- t + d.
  __device__ __forceinline__ void close(int agent, Lane decision, Lane& gradient, Lane& tracker) const {
    float strength = strengths[agent];
    EACH_LANE {
      gradient.word[k] = __fadd_rn(gradient.word[k], __fmul_rn(strength, decision.word[k]));
      tracker.word[k] = __fadd_rn(tracker.word[k], gradient.word[k]);
    }
  }
  // What is added to decisions along the tracker, or along m.
  __device__ __forceinline__ Lane descent(ll at, Lane lane) const {
    if (m) {
      Lane before = stream_in(m + at);
      EACH_LANE lane.word[k] += momentum * before.word[k];
      *(Lane*)(m + at) = lane;
    }
    EACH_LANE lane.word[k] *= -step;
    return lane;
  }
};

#if AGENTS <= 16
// A thread takes one lane of columns of all agents; grid (columns, groups).
template <class Terms> __device__ __forceinline__ void mix(float* v, const float* weights, ll stride, Terms terms) {
  __shared__ float row[AGENTS * AGENTS];
  for (int k = threadIdx.x; k < AGENTS * AGENTS; k += blockDim.x) row[k] = weights[k];
  __syncthreads();
  ll column = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * LANE;
  if (column >= stride) return;
  ll base = (ll)blockIdx.y * AGENTS * stride + column;
  Lane old[AGENTS];
#pragma unroll
  for (int j = 0; j < AGENTS; j++) old[j] = *(const Lane*)(v + base + j * stride);
#pragma unroll
  for (int i = FIRST; i <= LAST; i++) {
    ll at = base + i * stride;
    Lane lane = terms.seed(blockIdx.y, i, at);
#pragma unroll
    for (int j = 0; j < AGENTS; j++) {
      float weight = row[i * AGENTS + j];
      EACH_LANE lane.word[k] += weight * old[j].word[k];
    }
    *(Lane*)(v + at) = lane;
    terms.done(at, lane);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) pull(float* v, const float* t, half_word* narrow, const float* weights, ll stride, float step_y, float step_z) {
  mix(v, weights, stride, Pull{t, step_y, step_z, narrow});
}

extern "C" __global__ void __launch_bounds__(THREADS) track(float* t, float* fresh, const float* last, const float* v, const float* strengths, const float* weights, ll stride) {
  mix(t, weights, stride, Track{fresh, last, v, strengths});
}

template <bool ADAPTS_FIRST>
__device__ __forceinline__ void mix_round_any(Round round, Pull terms, ll stride, const float* pull, const float* push) {
  __shared__ float rows[AGENTS * AGENTS], columns[AGENTS * AGENTS];
  for (int k = threadIdx.x; k < AGENTS * AGENTS; k += blockDim.x) { rows[k] = pull[k]; columns[k] = push[k]; }
  __syncthreads();
  ll column = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * LANE;
  if (column >= stride) return;
  ll base = (ll)blockIdx.y * AGENTS * stride + column;
  Lane old[AGENTS], tracker[AGENTS], gradient[AGENTS];
#pragma unroll
  for (int j = 0; j < AGENTS; j++) {
    ll at = base + j * stride;
    old[j] = stream_in(round.v + at);
    tracker[j] = stream_in(round.t + at);
    gradient[j] = stream_in(round.d + at);
  }
  if (round.is_open) {
#pragma unroll
    for (int j = 0; j < AGENTS; j++) round.close(j, old[j], gradient[j], tracker[j]);
  }
  if (ADAPTS_FIRST) {
#pragma unroll
    for (int j = 0; j < AGENTS; j++) {
      Lane lane = round.descent(base + j * stride, tracker[j]);
      EACH_LANE old[j].word[k] += lane.word[k];
    }
  }
#pragma unroll
  for (int i = 0; i < AGENTS; i++) {
    ll at = base + i * stride;
    Lane lane = ADAPTS_FIRST ? Lane{} : round.descent(at, tracker[i]), sum;
    EACH_LANE sum.word[k] = -gradient[i].word[k];
#pragma unroll
    for (int j = 0; j < AGENTS; j++) {
      float row = rows[i * AGENTS + j], share = columns[i * AGENTS + j];
      EACH_LANE { lane.word[k] += row * old[j].word[k]; sum.word[k] += share * tracker[j].word[k]; }
    }
    *(Lane*)(round.v + at) = lane;
    terms.done(at, lane);
    *(Lane*)(round.t + at) = sum;
  }
}

#define ROUND_BOUNDS __launch_bounds__(THREADS, AGENTS <= 10 ? 3 : 2)
#define MATRICES const float *pull, const float *push
#define WEIGHTS pull, push
#else
// A block of THREADS threads takes COLUMNS columns of all agents into shared memory; a row is a sum over its neighbours there.
#define LANES (COLUMNS / LANE)

// Writes words that are read no more in this kernel. A row of a tile is short, and plain stores of such rows took 1.1 times as long
// among 100 agents and 1.4 times among 1000.
__device__ __forceinline__ void stream_out(float* to, Lane lane) { __stcs((float4*)to, *(const float4*)&lane); }

// Whom each agent hears, with what weights.
struct Links {
  const u32 *starts, *senders;
  const float* weights;
  template <int PITCH> __device__ __forceinline__ void add(Lane& sum, const Lane* tile, int agent, int lane) const {
    for (u32 link = starts[agent], end = starts[agent + 1]; link < end; link++) {
      float weight = weights[link];
      Lane old = tile[senders[link] * PITCH + lane];
      EACH_LANE sum.word[k] += weight * old.word[k];
    }
  }
};

template <class Terms> __device__ __forceinline__ void mix(float* v, Links links, ll stride, Terms terms) {
  extern __shared__ Lane tile[];
  ll base = (ll)blockIdx.y * AGENTS * stride + (ll)blockIdx.x * COLUMNS;
  int width = (int)min((ll)COLUMNS, stride - (ll)blockIdx.x * COLUMNS);
#pragma unroll 4
  for (int place = threadIdx.x; place < AGENTS * LANES; place += THREADS) {
    int column = place % LANES * LANE;
    if (column < width) tile[place] = *(const Lane*)(v + base + place / LANES * stride + column);
  }
  __syncthreads();
#pragma unroll 2
  for (int place = FIRST * LANES + threadIdx.x; place < (LAST + 1) * LANES; place += THREADS) {
    int agent = place / LANES, column = place % LANES * LANE;
    if (column >= width) continue;
    ll at = base + agent * stride + column;
    Lane lane = terms.seed(blockIdx.y, agent, at);
    links.add<LANES>(lane, tile, agent, place % LANES);
    *(Lane*)(v + at) = lane;
    terms.done(at, lane);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) pull(float* v, const float* t, half_word* narrow, const u32* starts, const u32* senders, const float* weights, ll stride, float step_y, float step_z) {
  mix(v, Links{starts, senders, weights}, stride, Pull{t, step_y, step_z, narrow});
}

extern "C" __global__ void __launch_bounds__(THREADS) track(float* t, float* fresh, const float* last, const float* v, const float* strengths, const u32* starts, const u32* senders, const float* weights, ll stride) {
  mix(t, Links{starts, senders, weights}, stride, Track{fresh, last, v, strengths});
}

// What a thread takes of both tiles of a round, which have half the columns: the same places in each step, so that what it keeps of them
// lies in registers.
#define HALF_LANES (LANES / 2)
#define PLACES ((AGENTS * HALF_LANES + THREADS - 1) / THREADS)
#define EACH_PLACE                                                                                                  \
  _Pragma("unroll") for (int p = 0; p < PLACES; p++)                                                                \
    if (int place = p * THREADS + threadIdx.x; place < AGENTS * HALF_LANES && place % HALF_LANES * LANE < width)     \
      if (ll at = base + place / HALF_LANES * stride + place % HALF_LANES * LANE; true)

template <bool ADAPTS_FIRST>
__device__ __forceinline__ void mix_round_any(Round round, Pull terms, ll stride, Links pull, Links push) {
  extern __shared__ Lane decisions[];
  Lane* trackers = decisions + AGENTS * HALF_LANES;
  ll base = (ll)blockIdx.y * AGENTS * stride + (ll)blockIdx.x * (COLUMNS / 2);
  int width = (int)min((ll)(COLUMNS / 2), stride - (ll)blockIdx.x * (COLUMNS / 2));
  Lane gradient[PLACES];
  EACH_PLACE {
    Lane decision = stream_in(round.v + at), tracker = stream_in(round.t + at);
    gradient[p] = stream_in(round.d + at);
    if (round.is_open) round.close(place / HALF_LANES, decision, gradient[p], tracker);
    trackers[place] = tracker;
    if (ADAPTS_FIRST) {
      tracker = round.descent(at, tracker);
      EACH_LANE decision.word[k] += tracker.word[k];
    }
    decisions[place] = decision;
  }
  __syncthreads();
  EACH_PLACE {
    int agent = place / HALF_LANES, lane = place % HALF_LANES;
    Lane decision = ADAPTS_FIRST ? Lane{} : round.descent(at, trackers[place]), tracker;
    EACH_LANE tracker.word[k] = -gradient[p].word[k];
    pull.add<HALF_LANES>(decision, decisions, agent, lane);
    push.add<HALF_LANES>(tracker, trackers, agent, lane);
    stream_out(round.v + at, decision);
    terms.done(at, decision);
    stream_out(round.t + at, tracker);
  }
}

#define ROUND_BOUNDS __launch_bounds__(THREADS, 1024 / THREADS)
#define MATRICES const u32 *pull_starts, const u32 *pull_senders, const float *pull, const u32 *push_starts, const u32 *push_senders, const float *push
#define WEIGHTS Links{pull_starts, pull_senders, pull}, Links{push_starts, push_senders, push}
#endif

#define MIX_ROUND(name, adapts_first)                                                                                                 \
  extern "C" __global__ void ROUND_BOUNDS name(float* v, float* t, const float* d, const float* strengths, float* m, half_word* narrow, MATRICES, ll stride, float step, float momentum, int is_open) { \
    Round round{v, t, d, strengths, m, step, momentum, is_open};                                                                        \
    mix_round_any<adapts_first>(round, Pull{nullptr, step, step, narrow}, stride, WEIGHTS);                                            \
  }
MIX_ROUND(mix_round, false)
MIX_ROUND(mix_adapted_round, true)
