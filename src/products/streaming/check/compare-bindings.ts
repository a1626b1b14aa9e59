import type { Contract, ContractBinding } from '../../../formats/contract/contract.js';
import type { ReferenceHeader } from '../../../formats/reference/reference.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import type { ModelBinding, ModelBindings } from '../contract/bindings.js';
import type { ContractFinding } from './finding.js';

const sourceNames = { contract: 'the contract', data: 'the recorded data', model: 'the model' } as const;
type Source = keyof typeof sourceNames;
type Shape = NonNullable<ContractBinding['shape']>;
type Binding = Pick<ModelBinding, 'name' | 'dtype' | 'shape'>;

/** One tensor in each source; undefined where a source lacks it. */
type Statements = readonly { readonly source: Source; readonly binding: Binding | undefined }[];

/**
 * Compares contract, recorded data and model tensor by tensor. Where two of three agree the third is wrong; where only two state something the finding is
 * undecided. Symbols and open dimensions agree with every number.
 */
export function compareBindings(
  contract: Contract,
  model: ModelBindings | null,
  data: Pick<ReferenceHeader, 'inputs' | 'outputs'> | null,
): readonly ContractFinding[] {
  return (['inputs', 'outputs'] as const).flatMap((side) => {
    const sides: readonly { readonly source: Source; readonly all: readonly Binding[] | undefined }[] = [
      { source: 'contract', all: contract[side] },
      { source: 'data', all: data?.[side] },
      { source: 'model', all: model?.[side] },
    ];
    const present = sides.flatMap(({ source, all }) => (all === undefined ? [] : [{ source, all }]));
    const names = new Set(present.flatMap(({ all }) => all.map(({ name }) => name)));
    return [...names].flatMap((name) =>
      compareTensor(
        `${side.slice(0, -1)} ${name}`,
        name,
        present.map(({ source, all }) => ({ source, binding: all.find((each) => each.name === name) })),
      ),
    );
  });
}

function compareTensor(what: string, name: string, statements: Statements): readonly ContractFinding[] {
  const presence = disagreement(statements, (binding) => (binding === undefined ? 'missing' : 'present'));
  if (presence !== null) return [finding('missing-binding', name, presence, `The ${what}`)];
  const found: ContractFinding[] = [];
  const dtype = disagreement(statements, (binding) => binding?.dtype ?? null);
  if (dtype !== null) {
    const isSame = meanTheSame(dtype.values.map(({ value }) => value as Dtype));
    const made = finding('dtype', name, dtype, `The dtype of the ${what}`);
    found.push(isSame ? { ...made, severity: 'warning' } : made);
  }
  const layout = disagreement(statements, (binding) => layoutOf(binding?.shape ?? null, statements));
  if (layout !== null) return [...found, finding('layout', name, layout, `The layout of the ${what}`)];
  const rank = disagreement(statements, (binding) => binding?.shape?.length.toString() ?? null);
  if (rank !== null) return [...found, finding('rank', name, rank, `The rank of the ${what}`)];
  const axes = Math.max(0, ...statements.map(({ binding }) => binding?.shape?.length ?? 0));
  for (let axis = 0; axis < axes; axis++) {
    const size = disagreement(statements, (binding) => {
      const dimension = binding?.shape?.[axis];
      return typeof dimension === 'number' ? `${dimension}` : null;
    });
    if (size !== null) found.push(finding('dimension', name, size, `Dimension ${axis} of the ${what}`));
  }
  return found;
}

interface Disagreement {
  readonly wrong: ContractFinding['wrong'];
  readonly values: readonly { readonly source: Source; readonly value: string }[];
}

/** Which source states another value than the others (null: it states none); null when all that state one agree. */
function disagreement(
  statements: Statements,
  stated: (binding: Binding | undefined) => string | null,
): Disagreement | null {
  const values = statements.flatMap(({ source, binding }) => {
    const value = stated(binding);
    return value === null ? [] : [{ source, value }];
  });
  if (new Set(values.map(({ value }) => value)).size < 2) return null;
  const alone = values.filter(({ value }) => values.filter((other) => other.value === value).length === 1);
  return { wrong: values.length === 3 && alone.length === 1 ? alone[0]!.source : 'undecided', values };
}

function finding(
  id: string,
  about: string,
  { wrong, values }: Disagreement,
  subject: string,
): ContractFinding {
  const namesOf = (all: Disagreement['values']): string =>
    capitalized(all.map(({ source }) => sourceNames[source]).join(' and '));
  return {
    id,
    wrong,
    severity: 'error',
    about,
    message: `${subject} is ${values.map(({ source, value }) => `${value} in ${sourceNames[source]}`).join(', ')}.`,
    why:
      wrong === 'undecided'
        ? `${namesOf(values)} disagree, and ${values.length === 3 ? 'no two agree' : 'nothing else states it'}.`
        : `${namesOf(values.filter(({ source }) => source !== wrong))} agree, so ${sourceNames[wrong]} is wrong.`,
    remedy: remedies[wrong],
  };
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const remedies = {
  contract: 'Correct the contract; `trtforge stream draft MODEL -o FILE` drafts one from the model.',
  data: 'Record the reference again with this model: trtforge stream record MODEL --contract CONTRACT -o ref.jsonl',
  model: 'Export the model again, or take the one that the contract and the reference were made for.',
  undecided: 'Pass `--contract` with a model and `--reference`.',
} as const;

/** TensorRT before 10 has no int64: lengths are int32 there and mean the same. */
export const meanTheSame = (all: readonly Dtype[]): boolean =>
  all.every((dtype) => dtypes[dtype].kind === 'int');

/**
 * `batch-first` or `layer-first` where shapes of a tensor fit each other only when the first two axes are swapped; null where they fit as they are.
 * Known by the number that stands on axis 0 of one and on axis 1 of the other: `[B, 24, …]` against `[24, B, …]`.
 */
function layoutOf(shape: Shape | null, statements: Statements): string | null {
  if (shape === null) return null;
  const shapes = statements.flatMap(({ binding }) => (binding?.shape == null ? [] : [binding.shape]));
  const layers = shapes.flatMap((a) =>
    shapes.flatMap((b) => (fitsSwapped(a, b) && typeof a[0] === 'number' && a[0] === b[1] ? [a[0]] : [])),
  );
  if (layers.length === 0) return null;
  return shape[0] === Math.max(...layers) ? 'layer-first' : 'batch-first';
}

function fitsSwapped(a: Shape, b: Shape): boolean {
  if (a.length !== b.length || a.length < 3) return false;
  const swapped = [b[1] ?? null, b[0] ?? null, ...b.slice(2)];
  return equalNumbers(a, swapped) > equalNumbers(a, b) && !conflicts(a, swapped);
}

const equalNumbers = (a: Shape, b: Shape): number =>
  a.filter((size, axis) => typeof size === 'number' && size === b[axis]).length;

const conflicts = (a: Shape, b: Shape): boolean =>
  a.some((size, axis) => typeof size === 'number' && typeof b[axis] === 'number' && size !== b[axis]);
