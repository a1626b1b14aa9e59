import { openSession } from '../../engines/runtime/open-session.js';
import type { WorkContext } from '../../events.js';
import type { BundleMeta } from '../../formats/contract/model-meta.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import type { ChainCheck } from './chain-schema.js';
import { type ChainCandidate, type Chained, checkChain } from './chained-check.js';
import { featuresOf } from './check-bundle.js';
import type { ComponentRun } from './component-run.js';
import { type ChainedComponent, chainedComponents } from './judge-chain.js';
import type { chainCheckOf } from './options.js';
import { transducerFacts } from './transducer-facts.js';

export interface Chain {
  /** undefined where nothing can be compared. */
  readonly run: ((work: WorkContext) => Promise<readonly ChainCheck[]>) | undefined;
  readonly notChecked: readonly string[];
}

/** The chained check of a bundle as it is: which candidates there are, and why not the others. */
export function chainOf(
  {
    meta,
    components,
  }: { readonly meta: BundleMeta | undefined; readonly components: readonly ComponentRun[] },
  check: NonNullable<ReturnType<typeof chainCheckOf>>,
  context: WorkContext,
): Chain {
  const notDecoded = (why: string): Chain => ({
    run: undefined,
    notChecked: [`The bundle was not decoded: ${why}.`],
  });
  const [encoder, predictor, joint] = chainedComponents.map((name) =>
    components.find((component) => component.name === name),
  );
  if (meta === undefined || encoder === undefined || predictor === undefined || joint === undefined) {
    const lacking = chainedComponents.filter(
      (name) => !components.some((component) => component.name === name),
    );
    return notDecoded(`this run has no ${lacking.join(' and no ')}`);
  }
  const by = { encoder, predictor, joint };
  const facts = transducerFacts(
    meta,
    { predictor: predictor.part.component, joint: joint.part.component },
    { predictor: smallestOf(predictor), joint: smallestOf(joint) },
  );
  if (typeof facts === 'string') return notDecoded(facts);
  const { recipe } = encoder.prepared.identity;
  const notChecked: string[] = [];
  const candidates: ChainCandidate[] = [];
  const onnxRuntime = (path: string) => openSession(path, {}, context);
  if (recipe.conversion === null)
    notChecked.push('No typed models were decoded: the builder gets the models as they are.');
  else candidates.push({ name: 'typed models', open: (name) => onnxRuntime(by[name].typedModel) });
  const why = encoder.whyNotRun();
  if (why !== null) notChecked.push(`The engines were not decoded with: ${why}.`);
  else
    candidates.push({
      name: 'engines',
      open: (name) => openSession(by[name].engine.path, by[name].engine.options, context),
    });
  const request: Chained = {
    facts,
    features: featureShape(encoder.part),
    ...check,
    precision: formatNamed(recipe.precision)?.id ?? 'as-is',
  };
  const reference = (name: ChainedComponent) => onnxRuntime(by[name].part.component.onnx);
  return {
    notChecked,
    run: candidates.length === 0 ? undefined : (work) => checkChain(request, reference, candidates, work),
  };
}

const smallestOf = ({ part: { component, profile } }: ComponentRun): ReadonlyMap<string, readonly number[]> =>
  new Map(
    component.inputs.map(({ name, shape }) => [
      name,
      profile.get(name)?.min ?? (shape ?? []).map((size) => (typeof size === 'number' ? size : 1)),
    ]),
  );

/** Features as long as the profile lets them be: the more encoder steps, the more decisions. */
function featureShape({ component, profile }: ComponentRun['part']): Chained['features'] {
  const input = featuresOf(component)!;
  const shape = (input.shape ?? []).map((size, axis) => {
    if (typeof size === 'number') return size;
    const range = profile.get(input.name);
    return (axis === 0 ? range?.min[axis] : range?.max[axis]) ?? 1;
  });
  const open = (input.shape ?? []).findLastIndex((size) => typeof size !== 'number');
  return { shape, frames: shape[Math.max(open, 1)] ?? 1 };
}
