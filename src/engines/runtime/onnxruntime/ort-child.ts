import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { serveSession } from '../../../base/process/supervised-child.js';
import { TrtforgeError } from '../../../errors.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import type { Tensor } from '../../../formats/tensor/tensor.js';
import { type ElementArray, elementsOf, isArrayDtype } from '../../../formats/tensor/values.js';
import type { Pace, PacedRuns } from '../back-end.js';
import { firstLine, loadOrt, type Ort } from './load-ort.js';
import { placementIn } from './ort-placement.js';
import type { OrtAnswer, OrtCuda, OrtOpened, OrtPlacement, OrtRequest } from './ort-protocol.js';

let session: InferenceSession | undefined;
let ort: Ort | undefined;
/** Set until the first run on CUDA is over and its record read. */
let recording: OrtCuda | undefined;
let placement: OrtPlacement = null;

serveSession(async (message) => {
  const request = message as OrtRequest;
  switch (request.kind) {
    case 'open':
      return open(request);
    case 'placement':
      return placement;
    case 'run':
      return run(request.inputs, request.iterations);
    case 'measure':
      return measure(request.inputs, request.pace);
  }
});

type Inputs = (OrtRequest & { kind: 'run' })['inputs'];

async function open({ modelPath, threads, cuda }: OrtRequest & { kind: 'open' }): Promise<OrtOpened> {
  const loaded = await loadOrt();
  ort = loaded;
  const manifest = createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
  if (cuda !== null) {
    // With the ONNX schema behind it this would be most of the start of a process that uses the CPU.
    const { probeCuda } = await import('./ort-cuda.js');
    await probeCuda(loaded, cuda.device, dirname(manifest));
  }
  recording = cuda ?? undefined;
  // Always by path: from a buffer the model and its weights would be in memory twice, and 2 GiB is the end.
  session = await inOrt(() =>
    loaded.InferenceSession.create(modelPath, {
      ...(cuda === null ? { executionProviders: ['cpu'] } : onCuda(cuda)),
      logSeverityLevel: 3,
      ...(threads === null ? {} : { intraOpNumThreads: threads }),
    }),
  );
  const { version } = createRequire(import.meta.url)(manifest) as { version: string };
  return { version };
}

/** The first run is recorded: only then does ONNX Runtime report which nodes it left on the CPU. */
const onCuda = ({ device, profileFolder }: OrtCuda): InferenceSession.SessionOptions => ({
  executionProviders: [{ name: 'cuda', deviceId: device }],
  enableProfiling: true,
  profileFilePrefix: join(profileFolder, 'first-run'),
});

/** The model with these inputs, to be run as often as one likes. */
function runner(inputs: Inputs): () => ReturnType<InferenceSession['run']> {
  const runtime = ort;
  const opened = session;
  if (runtime === undefined || opened === undefined)
    throw new TrtforgeError('TF_INTERNAL', 'The session is not open.');
  const feeds = Object.fromEntries(inputs.map(([name, tensor]) => [name, toOrt(runtime, name, tensor)]));
  return async () => {
    const results = await inOrt(() => opened.run(feeds));
    if (recording !== undefined) {
      opened.endProfiling();
      placement = placementIn(recording.profileFolder);
      recording = undefined;
    }
    rejectFallback(placement);
    return results;
  };
}

/** What ran on the CPU alone must not go by the name of CUDA. */
function rejectFallback(placed: OrtPlacement): void {
  if (placed === null || placed.onGpu > 0 || placed.onCpu === 0) return;
  throw new TrtforgeError(
    'TF_GPU_UNAVAILABLE',
    `CUDA was asked for, and ONNX Runtime ran all ${placed.onCpu} nodes of the model on the CPU.`,
    {
      remedy: 'Use --provider cpu: that is what it would be; or see what trtforge doctor reports of the GPU.',
    },
  );
}

async function run(inputs: Inputs, iterations: number): Promise<OrtAnswer> {
  const once = runner(inputs);
  const ms: number[] = [];
  for (;;) {
    const started = performance.now();
    const results = await once();
    ms.push(performance.now() - started);
    if (ms.length < iterations) continue;
    const outputs = Object.entries(results).map(([name, tensor]) => [name, fromOrt(name, tensor)] as const);
    return { outputs, ms };
  }
}

async function measure(inputs: Inputs, pace: Pace): Promise<PacedRuns> {
  const { warmUpMs, durationMs, iterations, idleMs } = pace;
  const once = runner(inputs);
  let warmUpRuns = 0;
  for (
    const begun = performance.now();
    warmUpRuns === 0 || performance.now() - begun < warmUpMs;
    warmUpRuns++
  )
    await once();
  const starts: number[] = [];
  const ends: number[] = [];
  const first = performance.now();
  // A call's end decides, not a later look at the clock: the whole is then never shorter than requested.
  let last = first;
  while (starts.length < iterations || last - first < durationMs) {
    starts.push(performance.now());
    await once();
    last = performance.now();
    ends.push(last);
    if (idleMs > 0) await sleep(idleMs);
  }
  return {
    startMs: Float64Array.from(starts, (start) => start - first),
    ms: Float64Array.from(ends, (end, at) => end - (starts[at] ?? end)),
    wallMs: last - first,
    warmUpRuns,
  };
}

/** The message is ONNX Runtime's own: the parent knows what the user calls the model. */
async function inOrt<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    throw new TrtforgeError('TF_ONNXRUNTIME_FAILED', firstLine(cause), { cause });
  }
}

function toOrt(runtime: Ort, name: string, tensor: Tensor): OrtTensor {
  const { dtype } = tensor;
  if (!isArrayDtype(dtype)) throw unsupported(name, dtype);
  const elements = elementsOf({ ...tensor, dtype });
  return new runtime.Tensor(dtype as 'float32', elements as Float32Array, [...tensor.shape]);
}

function fromOrt(name: string, tensor: OrtTensor): Tensor {
  const dtype = tensor.type in dtypes ? (tensor.type as Dtype) : undefined;
  if (dtype === undefined || !isArrayDtype(dtype)) throw unsupported(name, tensor.type);
  // Halves come as Uint16Array or, on newer Node, as Float16Array: their bytes are the same.
  const { buffer, byteOffset, byteLength } = tensor.data as ElementArray;
  return { dtype, shape: [...tensor.dims], bytes: new Uint8Array(buffer, byteOffset, byteLength) };
}

const unsupported = (name: string, dtype: string): TrtforgeError =>
  new TrtforgeError('TF_SESSION_BINDING', `${name} is ${dtype}, which cannot be passed to ONNX Runtime.`);
