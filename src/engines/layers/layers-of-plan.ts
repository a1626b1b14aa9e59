import { TrtforgeError } from '../../errors.js';
import type { Finding } from '../../formats/onnx/model-facts.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import type { Passport } from '../identity/passport.js';
import type { EngineBinding, EngineLayers } from './result.js';

/** Differences that a sentence names. */
const NAMED = 3;

/** The plan that a file of layers belongs to. */
export interface PlanOfLayers {
  readonly path: string;
  readonly planBytes: number;
  readonly planSha256: string;
  /** One that agrees with the plan; else why there is none, as a sentence. */
  readonly passport: Passport | string;
}

/** Layers from a file, and what the file reports of the plan they were taken from: trtexec's exports report none. */
export interface LayersClaim {
  readonly path: string;
  readonly read: EngineLayers;
  readonly planBytes: number | null;
  readonly planSha256: string | null;
}

/** Mismatches: `misfits` cannot be of one engine, `doubts` depend on what layers happen to read and write. */
interface Differences {
  readonly misfits: string[];
  readonly doubts: string[];
}

/**
 * Compares a file of layers with the engine it is passed for, by whatever both carry: size and digest of the plan, and, from the passport, names, directions,
 * types and fixed dimensions of inputs and outputs, and profiles. Before 11 (`Bindings`) types and dimensions are those of the layers that read or write a
 * tensor, so they only make a doubt. Throws TF_LAYERS_MISMATCH; gives a finding for doubts, or when nothing could be compared.
 */
export function checkLayersMatch(claim: LayersClaim, plan: PlanOfLayers): Finding[] {
  if (claim.planSha256 === plan.planSha256) return [];
  const { misfits, doubts } = compare(claim, plan);
  if (misfits.length > 0) {
    throw new TrtforgeError(
      'TF_LAYERS_MISMATCH',
      `${claim.path} has the layers of another engine than ${plan.path}: ${listed(misfits)}.`,
      { details: { misfits } },
    );
  }
  if (doubts.length > 0) {
    const message = `The layers may be of another engine than ${plan.path}: ${listed(doubts)}.`;
    return [{ code: 'layers-doubtful', severity: 'warning', message, where: claim.path }];
  }
  const why = uncheckedWhy(claim, plan);
  if (why === undefined) return [];
  const message = `Nothing shows whether these are the layers of ${plan.path}: the file names no plan. ${why}`;
  return [{ code: 'layers-unchecked', severity: 'info', message, where: claim.path }];
}

/** Why nothing was compared; undefined where something was. */
function uncheckedWhy(
  { planBytes, read }: LayersClaim,
  { passport, path }: PlanOfLayers,
): string | undefined {
  if (planBytes !== null) return undefined;
  if (typeof passport === 'string') return passport;
  if (read.bindings.length === 0) return 'It names no inputs and outputs either.';
  return tensorsOf(passport).length > 0
    ? undefined
    : `The passport of ${path} names no inputs and outputs either.`;
}

function compare({ read, planBytes, planSha256 }: LayersClaim, plan: PlanOfLayers): Differences {
  const differences: Differences = { misfits: [], doubts: [] };
  const { misfits } = differences;
  if (planBytes !== null && planBytes !== plan.planBytes)
    misfits.push(`they were taken from a plan of ${planBytes} bytes, this one has ${plan.planBytes}`);
  else if (planSha256 !== null)
    misfits.push(
      `they were taken from a plan with the SHA-256 ${planSha256.slice(0, 12)}…, this one has ${plan.planSha256.slice(0, 12)}…`,
    );
  if (typeof plan.passport === 'string') return differences;
  compareNames(read, plan.passport, misfits);
  for (const tensor of tensorsOf(plan.passport)) {
    const binding = read.bindings.find(({ name }) => name === tensor.name);
    if (binding !== undefined) compareBinding(binding, tensor, plan.passport, read.dialect, differences);
  }
  compareProfiles(read, plan.passport, misfits);
  return differences;
}

interface PassportTensor {
  readonly name: string;
  readonly mode: 'input' | 'output';
  readonly dtype: string;
  readonly shape: readonly (number | null)[] | null;
}

const tensorsOf = ({ plan }: Passport): readonly PassportTensor[] => [
  ...plan.inputs.map((input) => ({ ...input, mode: 'input' as const })),
  ...plan.outputs.map((output) => ({ ...output, mode: 'output' as const })),
];

function compareNames({ bindings }: EngineLayers, passport: Passport, misfits: string[]): void {
  const there = bindings.map(({ name }) => name);
  const here = tensorsOf(passport).map(({ name }) => name);
  if (there.length === 0 || here.length === 0) return;
  const onlyThere = there.filter((name) => !here.includes(name));
  const onlyHere = here.filter((name) => !there.includes(name));
  if (onlyThere.length > 0) misfits.push(`they bind ${named(onlyThere)}, and this engine does not`);
  if (onlyHere.length > 0) misfits.push(`they lack its ${named(onlyHere)}`);
}

function compareBinding(
  { mode, dtype, shape }: EngineBinding,
  tensor: PassportTensor,
  { built }: Passport,
  dialect: EngineLayers['dialect'],
  { misfits, doubts }: Differences,
): void {
  const { name } = tensor;
  const isOwn = dialect === 'io-tensors';
  if (isOwn && mode !== null && mode !== tensor.mode)
    misfits.push(`${name} is an ${mode} there and an ${tensor.mode} here`);
  // A passport that trtexec's builds get reports the model's types, which TensorRT may narrow.
  const ofDtype = isOwn && built.builder === undefined ? misfits : doubts;
  if (dtype !== null && tensor.dtype in dtypes && dtype !== tensor.dtype)
    ofDtype.push(`${name} is ${dtype} there and ${tensor.dtype} here`);
  if (shape !== null && tensor.shape !== null && !mayBeSame(shape, tensor.shape))
    (isOwn ? misfits : doubts).push(`${name} is ${dimsText(shape)} there and ${dimsText(tensor.shape)} here`);
}

function compareProfiles({ layers, bindings, dialect }: EngineLayers, passport: Passport, misfits: string[]) {
  const { profiles } = passport.identity.document.recipe;
  const count = Math.max(1, profiles.length);
  const last = layers.reduce((most, { profile }) => Math.max(most, profile), 0);
  if (last >= count) misfits.push(`they are of ${last + 1} profiles, this engine has ${count}`);
  if (dialect !== 'io-tensors') return;
  for (const { name, shapeTensor, profiles: ranges } of bindings) {
    if (shapeTensor === true) continue;
    for (const [index, range] of ranges.entries()) {
      const own = profiles[index]?.[name];
      if (own === undefined || own.values) continue;
      const side = (['min', 'opt', 'max'] as const).find((each) => {
        const there = range[each];
        return there !== null && !mayBeSame(there, own[each]);
      });
      if (side === undefined) continue;
      misfits.push(
        `profile ${index} has ${dimsText(range[side] ?? [])} as ${side} of ${name} there and ${dimsText(own[side])} here`,
      );
    }
  }
}

/** The same rank, and the same size wherever both are reported. */
const mayBeSame = (a: readonly (number | null)[], b: readonly (number | null)[]): boolean =>
  a.length === b.length && a.every((size, axis) => size === null || b[axis] === null || size === b[axis]);

const dimsText = (shape: readonly (number | null)[]): string =>
  `[${shape.map((size) => size ?? '?').join(', ')}]`;

const named = (names: readonly string[]): string =>
  `${names.slice(0, NAMED).join(', ')}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ''}`;

const listed = (differences: readonly string[]): string =>
  `${differences.slice(0, NAMED).join('; ')}${differences.length > NAMED ? `; and ${differences.length - NAMED} more` : ''}`;
