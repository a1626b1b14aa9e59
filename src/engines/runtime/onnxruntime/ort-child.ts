import { setTimeout as sleep } from 'node:timers/promises';
import { serveSession } from '../../../base/process/supervised-child.js';
import { TrtforgeError } from '../../../errors.js';
import { OutputObserver } from '../../../formats/precision/calibrate/observed-model.js';
import type { Extremes } from '../../../formats/precision/calibrate/ranges.js';
import type { PacedRuns } from '../back-end.js';
import type { OrtBinding, OrtCall, OrtModel } from './ort-model.js';
import type { OrtAnswer, OrtChildCall, OrtInputs, OrtOpen, OrtOpened } from './ort-protocol.js';

let model: OrtModel | undefined;
let observer = new OutputObserver();

serveSession(async (message) => {
  const request = message as OrtChildCall;
  switch (request.kind) {
    case 'open':
      return open(request);
    case 'placement':
      return model?.placement() ?? null;
    case 'run':
      return run(request);
    case 'observe':
      return observe(request);
    case 'observed':
      return observer.result();
    case 'measure':
      return measure(request);
    case 'close':
      return close();
  }
});

async function open(request: OrtOpen): Promise<OrtOpened> {
  const { native } = request;
  model =
    native === null
      ? await (await import('./node-model.js')).openNodeModel(request)
      : await (await import('./native-model.js')).openNativeModel(request, native);
  return model.facts;
}

async function close(): Promise<void> {
  await model?.close();
  model = undefined;
  observer = new OutputObserver();
}

function bind(inputs: OrtInputs, options: OrtBinding): OrtCall {
  if (model === undefined) throw new TrtforgeError('TF_INTERNAL', 'The session is not open.');
  return model.bind(
    inputs.map(([name, tensor]) => [name, { ...tensor, bytes: aligned(tensor.bytes) }]),
    options,
  );
}

/** A message has its bytes anywhere, and ONNX Runtime sums in an order that follows where they begin. */
const aligned = (bytes: Uint8Array): Uint8Array =>
  bytes.byteOffset % ALIGNED === 0 ? bytes : new Uint8Array(bytes);
/** Bytes of what processors add at once, and of what memory is allocated in. */
const ALIGNED = 16;

async function run({ inputs, iterations, state }: OrtChildCall & { kind: 'run' }): Promise<OrtAnswer> {
  const call = bind(inputs, { state, resident: false });
  const ms: number[] = [];
  while (ms.length < iterations) {
    const started = performance.now();
    await call.run();
    ms.push(performance.now() - started);
  }
  return { outputs: call.outputs(), ms };
}

/** Values stay in this process: for a calibration they are as many as the model computes. */
async function observe({
  inputs,
  observing,
}: OrtChildCall & { kind: 'observe' }): Promise<ReadonlyMap<string, Extremes>> {
  const call = bind(inputs, { state: [], resident: false });
  await call.run();
  return new Map(call.outputs().map(([name, tensor]) => [name, observer.add(name, tensor, observing)]));
}

async function measure({ inputs, pace, resident }: OrtChildCall & { kind: 'measure' }): Promise<PacedRuns> {
  const { warmUpMs, durationMs, iterations, idleMs } = pace;
  const call = bind(inputs, { state: [], resident });
  let warmUpRuns = 0;
  for (
    const begun = performance.now();
    warmUpRuns === 0 || performance.now() - begun < warmUpMs;
    warmUpRuns++
  )
    await call.run();
  const starts: number[] = [];
  const ends: number[] = [];
  const first = performance.now();
  // A call's end decides, not a later look at the clock: the whole is then never shorter than requested.
  let last = first;
  while (starts.length < iterations || last - first < durationMs) {
    starts.push(performance.now());
    await call.run();
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
