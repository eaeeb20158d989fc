// Patches and pooling of images stored height, width, channel.

extern "C" __global__ void patches(const T* x, ll x_model, T* out, ll out_model, ll words, int height, int width, int channels, int kernel, int padding) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  ll rest = at;
  int channel = rest % channels; rest /= channels;
  int kx = rest % kernel; rest /= kernel;
  int ky = rest % kernel; rest /= kernel;
  int ox = rest % width; rest /= width;
  int oy = rest % height; rest /= height;
  int row = oy + ky - padding, column = ox + kx - padding;
  bool inside = row >= 0 && row < height && column >= 0 && column < width;
  out[blockIdx.y * out_model + at] = inside ? x[blockIdx.y * x_model + ((rest * height + row) * width + column) * channels + channel] : narrow(0.f);
}

// Each word of the image gathers the patches it is in.
extern "C" __global__ void patches_backward(const T* patches, ll patches_model, T* dx, ll dx_model, ll words, int height, int width, int channels, int kernel, int padding) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  ll rest = at;
  int channel = rest % channels; rest /= channels;
  int column = rest % width; rest /= width;
  int row = rest % height; rest /= height;
  patches += blockIdx.y * patches_model;
  float sum = 0;
  for (int ky = 0; ky < kernel; ky++) {
    int y = row + padding - ky;
    if (y < 0 || y >= height) continue;
    for (int kx = 0; kx < kernel; kx++) {
      int x = column + padding - kx;
      if (x < 0 || x >= width) continue;
      ll patch = (rest * height + y) * width + x;
      sum += widen(patches[((patch * kernel + ky) * kernel + kx) * channels + channel]);
    }
  }
  dx[blockIdx.y * dx_model + at] = narrow(sum);
}

// First word of the square that output word `at` pools.
__device__ __forceinline__ ll square(ll at, int height, int width, int channels, int size) {
  int channel = at % channels; at /= channels;
  int ox = at % (width / size); at /= width / size;
  int oy = at % (height / size); at /= height / size;
  return ((at * height + oy * size) * width + ox * size) * channels + channel;
}

#define EACH_TAP for (int tap = 0; tap < size * size; tap++) if (ll from = start + (ll)(tap / size) * width * channels + (tap % size) * channels; true)

extern "C" __global__ void pool(const T* x, ll x_model, T* out, ll out_model, ll words, int height, int width, int channels, int size) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  x += blockIdx.y * x_model;
  ll start = square(at, height, width, channels, size);
  float largest = widen(x[start]);
  EACH_TAP largest = fmaxf(largest, widen(x[from]));
  out[blockIdx.y * out_model + at] = narrow(largest);
}

extern "C" __global__ void pool_backward(const T* x, ll x_model, const T* d, ll d_model, T* dx, ll dx_model, ll words, int height, int width, int channels, int size) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  x += blockIdx.y * x_model;
  dx += blockIdx.y * dx_model;
  ll start = square(at, height, width, channels, size), best = start;
  float value = widen(d[blockIdx.y * d_model + at]);
  EACH_TAP if (widen(x[from]) > widen(x[best])) best = from;
  EACH_TAP dx[from] = narrow(from == best ? value : 0.f);
}
