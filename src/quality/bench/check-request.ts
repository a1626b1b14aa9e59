import { checkDevice } from '../../addon/gpus.js';
import { assertWithin } from '../../base/options/library-arguments.js';
import { readPlanHeader } from '../../engines/plan/header.js';
import { checkSources } from '../../engines/run/gather-inputs.js';
import { bindingsInPassport, inputsInPassport, passportHere } from '../../engines/run/run-file.js';
import { checkWeightBudget } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import { modeOptions } from '../../tensorrt/trtexec/options.js';
import { type BenchRequest, sourcesOf } from './options.js';
import { shapeCases, withFileShapes } from './shape-cases.js';

/** Rejects what is wrong whatever GPU there is: a model or a file that is not a plan, inputs that cannot be fed, shapes that no profile of the passport takes. Throws TF_USAGE, TF_SIZE_INVALID, TF_PLAN_INVALID and what `checkSources` and `shapeCases` throw. */
export function checkRequest(request: BenchRequest): void {
  const { engine, device, inputs, shapes, mode, percentiles } = request;
  if (/\.onnx$/i.test(engine))
    throw new TrtforgeError('TF_USAGE', `${engine} is an ONNX model, not an engine.`, {
      remedy: `Build it first: \`trtforge build ${engine} -o model.engine\`; or measure the model: trtforge bench model ${engine}`,
    });
  assertWithin(modeOptions, mode);
  checkPercentiles(percentiles);
  checkDevice(device);
  checkWeightBudget(request);
  readPlanHeader(engine);
  const { ranges } = inputs;
  const asked = shapes.kind === 'shapes' ? { shapes: shapes.shapes } : {};
  const passport = passportHere(engine);
  checkSources({ sources: sourcesOf(inputs), ranges, ...asked }, inputsInPassport(passport));
  const bindings = bindingsInPassport(passport);
  if (bindings !== null) shapeCases(bindings, withFileShapes(bindings, request));
}

/** Throws TF_USAGE for a percentile beyond 0 and 100. */
export function checkPercentiles(percentiles: readonly number[] = []): void {
  const wrong = percentiles.find((percent) => !(percent >= 0 && percent <= 100));
  if (wrong !== undefined)
    throw new TrtforgeError('TF_USAGE', `percentiles has ${wrong}, and must have numbers from 0 to 100.`);
}
