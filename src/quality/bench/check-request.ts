import { readPlanHeader } from '../../engines/plan/header.js';
import { checkSources, inputsInPassport } from '../../engines/run/check-sources.js';
import type { Pace } from '../../engines/runtime/back-end.js';
import { checkWeightBudget } from '../../engines/runtime/tensorrt/weight-budget.js';
import { TrtforgeError } from '../../errors.js';
import { checkDevice } from '../../tensorrt/addon/chosen-gpu.js';
import { type BenchRequest, sourcesOf } from './request.js';

/** Rejects what is wrong whatever GPU there is: a model or a file that is not a plan, inputs that cannot be fed. Throws TF_USAGE, TF_SIZE_INVALID, TF_PLAN_INVALID and what `checkSources` throws. */
export function checkRequest(request: BenchRequest): void {
  const { engine, device, inputs, shapes, mode, weightBudget, percentiles } = request;
  if (/\.onnx$/i.test(engine))
    throw new TrtforgeError('TF_USAGE', `${engine} is an ONNX model, not an engine.`, {
      remedy: `Build it first: trtforge build ${engine} -o model.engine; or measure the model: trtforge bench model ${engine}`,
    });
  checkPace(mode, mode.streams);
  checkPercentiles(percentiles);
  checkDevice(device);
  checkWeightBudget(weightBudget);
  readPlanHeader(engine);
  const { ranges } = inputs;
  const asked = shapes.kind === 'shapes' ? { shapes: shapes.shapes } : {};
  checkSources({ sources: sourcesOf(inputs), ranges, ...asked }, inputsInPassport(engine));
}

/** Throws TF_USAGE for a way of measuring that gives no sample, or no end. */
export function checkPace({ iterations, warmUpMs, durationMs, idleMs }: Pace, streams = 1): void {
  const counts = { streams, iterations };
  const times = { warmUpMs, durationMs, idleMs };
  const count = Object.entries(counts).find(([, value]) => !(Number.isSafeInteger(value) && value >= 1));
  const time = Object.entries(times).find(([, value]) => !(Number.isFinite(value) && value >= 0));
  const [name, value] = count ?? time ?? [];
  if (name === undefined) return;
  const range = count === undefined ? 'a number of milliseconds from 0' : 'a whole number from 1';
  throw new TrtforgeError('TF_USAGE', `${name} is ${value}, and must be ${range}.`);
}

/** Throws TF_USAGE for a percentile beyond 0 and 100. */
export function checkPercentiles(percentiles: readonly number[] = []): void {
  const wrong = percentiles.find((percent) => !(percent >= 0 && percent <= 100));
  if (wrong !== undefined)
    throw new TrtforgeError('TF_USAGE', `percentiles has ${wrong}, and must have numbers from 0 to 100.`);
}
