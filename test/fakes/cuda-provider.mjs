/**
 * onnxruntime-node with a CUDA provider that is none, for machines without a GPU: models run on the CPU provider, and this says what would have been said
 * of CUDA. `FAKE_CUDA`: `falls-back` (every node is left on the CPU, in silence), `no-device`, `lost-library`, or operators that CUDA takes (`MatMul,Relu`).
 * What each session was asked for is added to `FAKE_CUDA_LOG`, a line of JSON each. Load it with `--import`.
 */
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { dirname, join } from 'node:path';

const wish = process.env.FAKE_CUDA ?? 'falls-back';

if (!import.meta.url.endsWith('?binding')) {
  const hook = `export const resolve = (name, context, next) =>
    name === 'onnxruntime-node' && !context.parentURL?.endsWith('?binding')
      ? { url: ${JSON.stringify(`${import.meta.url}?binding`)}, shortCircuit: true }
      : next(name, context);`;
  register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

const real = import.meta.url.endsWith('?binding') ? await import('onnxruntime-node') : undefined;
export const Tensor = real?.Tensor;
export const listSupportedBackends = real?.listSupportedBackends;

export const InferenceSession = {
  async create(model, { executionProviders, ...options }) {
    const asked = { executionProviders, profiled: options.enableProfiling ?? false };
    const tf32 = process.env.NVIDIA_TF32_OVERRIDE ?? null;
    appendFileSync(process.env.FAKE_CUDA_LOG, `${JSON.stringify({ ...asked, tf32 })}\n`);
    if (executionProviders[0] === 'cpu') return real.InferenceSession.create(model, options);
    if (wish === 'no-device')
      throw new Error(
        '/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:154 std::conditional_t<THRW, void, common::Status> = void] CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=here ; file=x.cc',
      );
    if (wish === 'lost-library') {
      process.stderr.write(
        '\x1b[1;31m2026-11-21 [E:onnxruntime] FAIL : Failed to load library /x/libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file: No such file or directory\n\x1b[m\n',
      );
      throw new Error('OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library');
    }
    const session = await real.InferenceSession.create(model, options);
    return {
      run: (feeds) => session.run(feeds),
      release: () => session.release(),
      endProfiling: () => {
        session.endProfiling();
        giveToCuda(dirname(options.profileFilePrefix));
      },
    };
  },
};

/** Writes CUDA behind the operators it takes. */
function giveToCuda(folder) {
  const [file] = readdirSync(folder);
  const path = join(folder, file);
  const events = JSON.parse(readFileSync(path, 'utf8'));
  for (const { args } of events)
    if (wish.split(',').includes(args?.op_name)) args.provider = 'CUDAExecutionProvider';
  writeFileSync(path, JSON.stringify(events));
}
