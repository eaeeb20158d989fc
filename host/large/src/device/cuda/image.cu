// Patches and pooling of images stored height, width, channel.

extern "C" __global__ void patches(const T* x, ll x_model, T* out, ll out_model, ll words, int height, int width, int channels, int kernel, int stride, int padding, int out_height, int out_width) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  ll rest = at;
  int channel = rest % channels; rest /= channels;
  int kx = rest % kernel; rest /= kernel;
  int ky = rest % kernel; rest /= kernel;
  int ox = rest % out_width; rest /= out_width;
  int oy = rest % out_height; rest /= out_height;
  int row = oy * stride + ky - padding, column = ox * stride + kx - padding;
  bool inside = row >= 0 && row < height && column >= 0 && column < width;
  out[blockIdx.y * out_model + at] = inside ? x[blockIdx.y * x_model + ((rest * height + row) * width + column) * channels + channel] : narrow(0.f);
}

// Each word of the image gathers the patches it is in.
extern "C" __global__ void patches_backward(const T* patches, ll patches_model, T* dx, ll dx_model, ll words, int height, int width, int channels, int kernel, int stride, int padding, int out_height, int out_width) {
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
    if (y < 0 || y % stride || y / stride >= out_height) continue;
    for (int kx = 0; kx < kernel; kx++) {
      int x = column + padding - kx;
      if (x < 0 || x % stride || x / stride >= out_width) continue;
      ll patch = (rest * out_height + y / stride) * out_width + x / stride;
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

extern "C" __global__ void pool(const T* x, ll x_model, T* out, ll out_model, ll words, int height, int width, int channels, int size, int is_max) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  x += blockIdx.y * x_model;
  ll start = square(at, height, width, channels, size);
  float largest = widen(x[start]), sum = 0;
  EACH_TAP { float value = widen(x[from]); largest = fmaxf(largest, value); sum += value; }
  out[blockIdx.y * out_model + at] = narrow(is_max ? largest : sum / (size * size));
}

extern "C" __global__ void pool_backward(const T* x, ll x_model, const T* d, ll d_model, T* dx, ll dx_model, ll words, int height, int width, int channels, int size, int is_max) {
  ll at = (ll)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= words) return;
  x += blockIdx.y * x_model;
  dx += blockIdx.y * dx_model;
  ll start = square(at, height, width, channels, size), best = start;
  float value = widen(d[blockIdx.y * d_model + at]);
  if (is_max) EACH_TAP if (widen(x[from]) > widen(x[best])) best = from;
  EACH_TAP dx[from] = narrow(!is_max ? value / (size * size) : from == best ? value : 0.f);
}
