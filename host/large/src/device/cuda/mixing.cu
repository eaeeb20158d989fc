// Pull and push over packed state [groups, AGENTS, stride], in place: each word is read once and written once.
// Compiled for one number of agents, of which those from FIRST to LAST are computed here; of the others only what they sent is read.

#if !defined(AGENTS) || !defined(FIRST) || !defined(LAST)
#error AGENTS, FIRST and LAST must say for which agents
#endif

// Dense: words of one agent a thread holds, so that all agents' words fit its registers, and receivers it has under way at
// once. Sparse: a tile of COLUMNS columns lies in shared memory.
#if AGENTS <= 16
#define LANE 4
#define AT_ONCE AGENTS
#elif AGENTS <= 32
#define LANE 2
#define AT_ONCE 4
#elif AGENTS <= 64
#define LANE 1
#define AT_ONCE 4
#else
#define LANE 4
#endif
struct alignas(LANE * 4) Lane { float word[LANE]; };
struct alignas(LANE * 2) Half { half_word word[LANE]; };
#define EACH_LANE _Pragma("unroll") for (int k = 0; k < LANE; k++)

// Reads words that this kernel reads once: past the first-level cache, and free to be moved before any write. Where the same
// thread writes the same words later, what it writes depends on what it read, so the read comes first.
__device__ __forceinline__ Lane stream_in(const float* from) {
  Lane lane;
#if LANE == 4
  asm("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(lane.word[0]), "=f"(lane.word[1]), "=f"(lane.word[2]), "=f"(lane.word[3]) : "l"(from));
#elif LANE == 2
  asm("ld.global.nc.L1::no_allocate.v2.f32 {%0, %1}, [%2];" : "=f"(lane.word[0]), "=f"(lane.word[1]) : "l"(from));
#else
  asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(lane.word[0]) : "l"(from));
#endif
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


#if AGENTS <= 64
// A thread takes one lane of columns of all agents; grid (columns, groups).
template <class Terms> __device__ __forceinline__ void mix_dense(float* v, const float* weights, ll stride, Terms terms) {
  __shared__ float row[AGENTS * AGENTS];
  for (int k = threadIdx.x; k < AGENTS * AGENTS; k += blockDim.x) row[k] = weights[k];
  __syncthreads();
  ll column = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * LANE;
  if (column >= stride) return;
  ll base = (ll)blockIdx.y * AGENTS * stride + column;
  Lane old[AGENTS];
#pragma unroll
  for (int j = 0; j < AGENTS; j++) old[j] = *(const Lane*)(v + base + j * stride);
#pragma unroll AT_ONCE
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

extern "C" __global__ void __launch_bounds__(256) pull_dense(float* v, const float* t, half_word* narrow, const float* weights, ll stride, float step_y, float step_z) {
  mix_dense(v, weights, stride, Pull{t, step_y, step_z, narrow});
}

extern "C" __global__ void __launch_bounds__(256) track_dense(float* t, float* fresh, const float* last, const float* v, const float* strengths, const float* weights, ll stride) {
  mix_dense(t, weights, stride, Track{fresh, last, v, strengths});
}

#if AGENTS <= 16
// Device::mix_round. Sums that reading the state makes on the host as well are not contracted, so that both have the same bits.
template <bool ADAPTS_FIRST>
__device__ __forceinline__ void mix_round_any(float* v, float* t, const float* d, const float* strengths, float* m, half_word* narrow, const float* pull, const float* push, ll stride, float step_y, float step_z, float momentum, int is_open) {
  __shared__ float rows[AGENTS * AGENTS], columns[AGENTS * AGENTS];
  for (int k = threadIdx.x; k < AGENTS * AGENTS; k += blockDim.x) { rows[k] = pull[k]; columns[k] = push[k]; }
  __syncthreads();
  ll column = ((ll)blockIdx.x * blockDim.x + threadIdx.x) * LANE;
  if (column >= stride) return;
  ll base = (ll)blockIdx.y * AGENTS * stride + column;
  Lane old[AGENTS], tracker[AGENTS], gradient[AGENTS];
#pragma unroll
  for (int j = 0; j < AGENTS; j++) {
    old[j] = stream_in(v + base + j * stride);
    tracker[j] = stream_in(t + base + j * stride);
    gradient[j] = stream_in(d + base + j * stride);
  }
  if (is_open) {
#pragma unroll
    for (int j = 0; j < AGENTS; j++) {
      float strength = strengths[blockIdx.y * AGENTS + j];
      EACH_LANE {
        gradient[j].word[k] = __fadd_rn(gradient[j].word[k], __fmul_rn(strength, old[j].word[k]));
        tracker[j].word[k] = __fadd_rn(tracker[j].word[k], gradient[j].word[k]);
      }
    }
  }
  float step = blockIdx.y ? step_z : step_y;
  auto descent = [&](int i) {
    Lane lane = tracker[i];
    if (m) {
      Lane before = stream_in(m + base + i * stride);
      EACH_LANE lane.word[k] += momentum * before.word[k];
      *(Lane*)(m + base + i * stride) = lane;
    }
    EACH_LANE lane.word[k] *= -step;
    return lane;
  };
  if (ADAPTS_FIRST) {
#pragma unroll
    for (int j = 0; j < AGENTS; j++) {
      Lane lane = descent(j);
      EACH_LANE old[j].word[k] += lane.word[k];
    }
  }
  Pull terms{nullptr, step_y, step_z, narrow};
#pragma unroll
  for (int i = 0; i < AGENTS; i++) {
    ll at = base + i * stride;
    Lane lane = ADAPTS_FIRST ? Lane{} : descent(i), sum;
    EACH_LANE sum.word[k] = -gradient[i].word[k];
#pragma unroll
    for (int j = 0; j < AGENTS; j++) {
      float row = rows[i * AGENTS + j], share = columns[i * AGENTS + j];
      EACH_LANE { lane.word[k] += row * old[j].word[k]; sum.word[k] += share * tracker[j].word[k]; }
    }
    *(Lane*)(v + at) = lane;
    terms.done(at, lane);
    *(Lane*)(t + at) = sum;
  }
}

#define MIX_ROUND(name, adapts_first)                                                                                                \
  extern "C" __global__ void __launch_bounds__(128, AGENTS <= 10 ? 3 : 2) name(float* v, float* t, const float* d, const float* strengths, float* m, half_word* narrow, const float* pull, const float* push, ll stride, float step_y, float step_z, float momentum, int is_open) { \
    mix_round_any<adapts_first>(v, t, d, strengths, m, narrow, pull, push, stride, step_y, step_z, momentum, is_open);               \
  }
MIX_ROUND(mix_round, false)
MIX_ROUND(mix_adapted_round, true)
#endif
#else
// A block of THREADS threads takes COLUMNS columns of all agents into shared memory; a row is a sum over its neighbours there.
#define LANES (COLUMNS / LANE)

template <class Terms> __device__ __forceinline__ void mix_sparse(float* v, const u32* starts, const u32* senders, const float* weights, ll stride, Terms terms) {
  extern __shared__ Lane tile[];
  ll base = (ll)blockIdx.y * AGENTS * stride + (ll)blockIdx.x * COLUMNS;
  int width = (int)min((ll)COLUMNS, stride - (ll)blockIdx.x * COLUMNS);
#pragma unroll 4
  for (int place = threadIdx.x; place < AGENTS * LANES; place += blockDim.x) {
    int column = place % LANES * LANE;
    if (column < width) tile[place] = *(const Lane*)(v + base + place / LANES * stride + column);
  }
  __syncthreads();
#pragma unroll 2
  for (int place = FIRST * LANES + threadIdx.x; place < (LAST + 1) * LANES; place += blockDim.x) {
    int agent = place / LANES, column = place % LANES * LANE;
    if (column >= width) continue;
    ll at = base + agent * stride + column;
    Lane lane = terms.seed(blockIdx.y, agent, at);
    for (u32 link = starts[agent]; link < starts[agent + 1]; link++) {
      float weight = weights[link];
      Lane old = tile[senders[link] * LANES + place % LANES];
      EACH_LANE lane.word[k] += weight * old.word[k];
    }
    *(Lane*)(v + at) = lane;
    terms.done(at, lane);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) pull_sparse(float* v, const float* t, half_word* narrow, const u32* starts, const u32* senders, const float* weights, ll stride, float step_y, float step_z) {
  mix_sparse(v, starts, senders, weights, stride, Pull{t, step_y, step_z, narrow});
}

extern "C" __global__ void __launch_bounds__(THREADS) track_sparse(float* t, float* fresh, const float* last, const float* v, const float* strengths, const u32* starts, const u32* senders, const float* weights, ll stride) {
  mix_sparse(t, starts, senders, weights, stride, Track{fresh, last, v, strengths});
}
#endif
