import { readPlanHeader } from '../engine/plan-header.js';
import { checkSources, inputsInPassport } from '../verify/check-sources.js';
import { type BenchRequest, sourcesOf } from './request.js';

/** Refuses what is wrong whatever GPU there is: a file that is no plan, inputs that cannot be fed. Throws TF_PLAN_INVALID and what `checkSources` throws. */
export function checkRequest({ engine, inputs, shapes }: BenchRequest): void {
  readPlanHeader(engine);
  const { ranges } = inputs;
  const asked = shapes.kind === 'shapes' ? { shapes: shapes.shapes } : {};
  checkSources({ sources: sourcesOf(inputs), ranges, ...asked }, inputsInPassport(engine));
}
