/* FAB's own kernels as plain C, for a microcontroller with a single-precision unit: what `fabswarm bench boards` counts beside ours.
 * The same sums in the same order as the paper writes them; sizes are known at run time, as they are in the firmware. */
#include <stddef.h>
#include <stdint.h>

#define ONE 1048576.0f
#define WEIGHT_POINT 31

/* m = beta m + t, and v = v - eta m. */
static void descend(float beta, float eta, size_t begin, size_t end, const int32_t *tracker, float *restrict m, float *restrict v)
{
    for (size_t i = begin; i < end; i++) {
        m[i] = beta * m[i] + (float)tracker[i] * (1.0f / ONE);
        v[i] -= eta * m[i];
    }
}

/* v = sum of all decisions heard, equally weighted, minus eta times the accumulated trackers. */
void c_pull(size_t x, size_t y, float beta, const float *eta, float weight, const float *own, const float *const *heard,
            size_t count, const int32_t *tracker, float *restrict m, float *restrict next)
{
    size_t words = x + 2 * y;
    for (size_t i = 0; i < words; i++)
        next[i] = own[i];
    for (size_t j = 0; j < count; j++) {
        const float *v = heard[j];
        for (size_t i = 0; i < words; i++)
            next[i] += v[i];
    }
    for (size_t i = 0; i < words; i++)
        next[i] *= weight;
    descend(beta, eta[0], 0, x, tracker, m, next);
    descend(beta, eta[1], x, x + y, tracker, m, next);
    descend(beta, eta[2], x + y, words, tracker, m, next);
}

static float dot(const float *a, const float *b, size_t n)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* out = M x, M column-major. */
static void mat_vec(const float *m, const float *x, size_t rows, size_t columns, float *restrict out)
{
    for (size_t i = 0; i < rows; i++)
        out[i] = 0.0f;
    for (size_t c = 0; c < columns; c++)
        for (size_t i = 0; i < rows; i++)
            out[i] += m[c * rows + i] * x[c];
}

struct policy_evaluation {
    const float *features, *successors, *rewards;
    float upper_weight, lower_weight, regularisation;
    size_t states, columns;
};

/* The gradient of the penalised problem of policy evaluation. */
void c_gradient(const struct policy_evaluation *p, float lambda, const float *v, float *restrict d, float *restrict scratch)
{
    size_t n = p->states, k = p->columns;
    const float *x = v, *y = v + k, *z = v + k + n;
    float *dx = d, *dy = d + k, *dz = d + k + n, *misfit = scratch, *gap = scratch + n;
    float scale = 1.0f / lambda, bound = scale * lambda * p->lower_weight;
    mat_vec(p->features, x, n, k, misfit);
    for (size_t i = 0; i < n; i++)
        misfit[i] = p->upper_weight * (misfit[i] - y[i]);
    mat_vec(p->successors, x, n, k, dz);
    for (size_t i = 0; i < n; i++) {
        float target = dz[i] + p->rewards[i];
        misfit[i] *= scale;
        dy[i] = bound * (y[i] - target) - misfit[i];
        dz[i] = bound * (z[i] - target);
        gap[i] = bound * (z[i] - y[i]);
    }
    for (size_t c = 0; c < k; c++) {
        float fit = dot(p->features + c * n, misfit, n) + dot(p->successors + c * n, gap, n);
        dx[c] = fit + scale * (p->regularisation * x[c]);
    }
}

/* Gives a share of the tracker away, takes what `count` senders gave, and tracks the newest gradient. Answers whether it fits. */
int c_push(size_t words, int64_t weight, int32_t audience, int32_t *restrict t, int64_t *restrict carry, int32_t *restrict sigma,
           const int32_t *const *sums, int32_t *const *rho, size_t count, const float *newest, int32_t *restrict d)
{
    for (size_t i = 0; i < words; i++) {
        int64_t due = carry[i] + (int64_t)t[i] * weight;
        int64_t share = due >> WEIGHT_POINT;
        carry[i] = due - (share << WEIGHT_POINT);
        sigma[i] = (int32_t)((uint32_t)sigma[i] + (uint32_t)share);
        t[i] = (int32_t)((uint32_t)t[i] - (uint32_t)share * (uint32_t)audience);
    }
    for (size_t j = 0; j < count; j++)
        for (size_t i = 0; i < words; i++) {
            t[i] = (int32_t)((uint32_t)t[i] + (uint32_t)sums[j][i] - (uint32_t)rho[j][i]);
            rho[j][i] = sums[j][i];
        }
    int fits = 1;
    for (size_t i = 0; i < words; i++)
        fits &= __builtin_fabsf(newest[i] * ONE) < 1073741824.0f;
    if (!fits)
        return 0;
    for (size_t i = 0; i < words; i++) {
        float scaled = newest[i] * ONE;
        int32_t now = (int32_t)(scaled + (scaled < 0.0f ? -0.5f : 0.5f));
        t[i] = (int32_t)((uint32_t)t[i] + (uint32_t)now - (uint32_t)d[i]);
        d[i] = now;
    }
    return 1;
}
