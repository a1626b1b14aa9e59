import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import type { Contract, ContractBinding } from '../contract/contract.js';
import type { ReferenceHeader } from '../reference/reference.js';
import type { ContractFinding } from './finding.js';

/** Names, dtypes and shapes of a model, an engine or a session; a session is one as it is. */
export interface ModelBindings {
  readonly inputs: readonly ModelBinding[];
  readonly outputs: readonly ModelBinding[];
}

export interface ModelBinding {
  readonly name: string;
  readonly dtype: Dtype | null;
  readonly shape: ContractBinding['shape'];
  /** Engines: dimensions per optimization profile; empty where any will do. */
  readonly profiles?: readonly { readonly min: readonly number[]; readonly max: readonly number[] }[];
}

export type Witness = 'contract' | 'data' | 'model';
type Shape = ContractBinding['shape'];
type Told = Pick<ModelBinding, 'name' | 'dtype' | 'shape'>;

/** What the witnesses say of one tensor; a witness that says nothing of any tensor is not asked. */
type Testimony = readonly { readonly witness: Witness; readonly told: Told | undefined }[];

/**
 * Compares contract, recorded data and model tensor by tensor. Where two of three agree the third is wrong; where only two speak the finding is undecided.
 * Symbols and open dimensions agree with every number.
 */
export function compareBindings(
  contract: Contract,
  model: ModelBindings | null,
  data: Pick<ReferenceHeader, 'inputs' | 'outputs'> | null,
): readonly ContractFinding[] {
  return (['inputs', 'outputs'] as const).flatMap((side) => {
    const sides: readonly { witness: Witness; all: readonly Told[] }[] = [
      { witness: 'contract', all: contract[side] },
      ...(data === null ? [] : [{ witness: 'data' as const, all: data[side] }]),
      ...(model === null ? [] : [{ witness: 'model' as const, all: model[side] }]),
    ];
    const names = new Set(sides.flatMap(({ all }) => all.map(({ name }) => name)));
    return [...names].flatMap((name) =>
      compareTensor(
        `${side.slice(0, -1)} ${name}`,
        name,
        sides.map(({ witness, all }) => ({ witness, told: all.find((each) => each.name === name) })),
      ),
    );
  });
}

function compareTensor(what: string, name: string, testimony: Testimony): readonly ContractFinding[] {
  const presence = dissent(testimony, ({ told }) => (told === undefined ? 'missing' : 'there'));
  if (presence !== null)
    return [finding('missing-binding', name, presence, (text) => `The ${what} is ${text}`)];
  const dtype = dissent(testimony, ({ told }) => told?.dtype ?? null);
  const found: ContractFinding[] = [];
  if (dtype !== null) found.push(dtypeFinding(what, name, dtype));
  const layout = dissent(testimony, ({ told }) => layoutOf(told?.shape ?? null, testimony));
  if (layout !== null)
    return [...found, finding('layout', name, layout, (text) => `The layout of the ${what} is ${text}`)];
  const rank = dissent(testimony, ({ told }) => (told?.shape == null ? null : `${told.shape.length}`));
  if (rank !== null)
    return [...found, finding('rank', name, rank, (text) => `The rank of the ${what} is ${text}`)];
  const axes = Math.max(0, ...testimony.map(({ told }) => told?.shape?.length ?? 0));
  for (let axis = 0; axis < axes; axis++) {
    const size = dissent(testimony, ({ told }) => {
      const dimension = told?.shape?.[axis];
      return typeof dimension === 'number' ? `${dimension}` : null;
    });
    if (size !== null)
      found.push(finding('dimension', name, size, (text) => `Dimension ${axis} of the ${what} is ${text}`));
  }
  return found;
}

interface Dissent {
  readonly wrong: ContractFinding['wrong'];
  readonly said: readonly { readonly witness: Witness; readonly value: string }[];
}

/** Who says something else than the others; null when all who speak agree. */
function dissent(testimony: Testimony, value: (each: Testimony[number]) => string | null): Dissent | null {
  const said = testimony.flatMap((each) => {
    const spoken = value(each);
    return spoken === null ? [] : [{ witness: each.witness, value: spoken }];
  });
  if (new Set(said.map((each) => each.value)).size < 2) return null;
  const alone = said.filter((each) => said.filter((other) => other.value === each.value).length === 1);
  const wrong = said.length === 3 && alone.length === 1 ? alone[0]!.witness : 'undecided';
  return { wrong, said };
}

const owner = { contract: 'the contract', data: 'the recorded data', model: 'the model' } as const;

function finding(
  id: string,
  about: string,
  { wrong, said }: Dissent,
  sentence: (text: string) => string,
): ContractFinding {
  const text = said.map(({ witness, value }) => `${value} in ${owner[witness]}`).join(', ');
  const others = said.filter(({ witness }) => witness !== wrong).map(({ witness }) => owner[witness]);
  return {
    id,
    wrong,
    severity: 'error',
    about,
    message: `${sentence(text)}.`,
    why:
      wrong === 'undecided'
        ? `${capitalized(said.map(({ witness }) => owner[witness]).join(' and '))} disagree, and ${said.length === 3 ? 'no two agree' : 'nothing else speaks of it'}.`
        : `${capitalized(others.join(' and '))} agree, so ${owner[wrong]} is wrong.`,
    remedy: remedies[wrong],
  };
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const remedies = {
  contract: 'Correct the contract; trtforge stream draft MODEL -o FILE drafts one from the model.',
  data: 'Record the reference again with this model: trtforge stream record MODEL --contract CONTRACT.',
  model: 'Export the model again, or take the one that the contract and the reference were made for.',
  undecided: 'Bring a third witness: give a contract, a model and a reference together.',
} as const;

function dtypeFinding(what: string, name: string, dissenting: Dissent): ContractFinding {
  const made = finding('dtype', name, dissenting, (text) => `The dtype of the ${what} is ${text}`);
  const said = dissenting.said.map(({ value }) => value as Dtype);
  return meanTheSame(said) ? { ...made, severity: 'warning' } : made;
}

/** TensorRT before 10 has no int64: lengths are int32 there and mean the same. */
export const meanTheSame = (all: readonly Dtype[]): boolean =>
  all.every((dtype) => dtypes[dtype].kind === 'int');

/**
 * `batch-first` or `layer-first` where shapes of a tensor fit each other only when the first two axes are swapped; null where they fit as they are.
 * Known by the number that stands on axis 0 of one and on axis 1 of the other: `[B, 24, …]` against `[24, B, …]`.
 */
function layoutOf(shape: Shape, testimony: Testimony): string | null {
  if (shape === null) return null;
  const shapes = testimony.flatMap(({ told }) => (told?.shape == null ? [] : [told.shape]));
  const layers = shapes.flatMap((a) => shapes.flatMap((b) => (fitsSwapped(a, b) ? layersOf(a, b) : [])));
  if (layers.length === 0) return null;
  return shape[0] === Math.max(...layers) ? 'layer-first' : 'batch-first';
}

const layersOf = (a: NonNullable<Shape>, b: NonNullable<Shape>): readonly number[] =>
  typeof a[0] === 'number' && a[0] === b[1] ? [a[0]] : [];

function fitsSwapped(a: NonNullable<Shape>, b: NonNullable<Shape>): boolean {
  if (a.length !== b.length || a.length < 3) return false;
  const swapped = [b[1] ?? null, b[0] ?? null, ...b.slice(2)];
  return equalNumbers(a, swapped) > equalNumbers(a, b) && !conflicts(a, swapped);
}

const equalNumbers = (a: NonNullable<Shape>, b: NonNullable<Shape>): number =>
  a.filter((size, axis) => typeof size === 'number' && size === b[axis]).length;

const conflicts = (a: NonNullable<Shape>, b: NonNullable<Shape>): boolean =>
  a.some((size, axis) => typeof size === 'number' && typeof b[axis] === 'number' && size !== b[axis]);
