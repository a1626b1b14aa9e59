import { plural } from '../../../base/text/quantity.js';
import type { ProgramKernel } from '../../../engines/plan/program.js';
import type { Change } from '../conversion.js';
import { type FusionGroup, fusionGroups, type InnerTensor, kernelsOf } from '../fusions.js';
import { type Smallest, smallestPassing } from '../search.js';
import type { Candidates } from './candidates.js';
import type { BisectResult } from './result.js';
import type { Suspect } from './suspects.js';

/** The result of a search, before it is written down. */
export interface Finding
  extends Pick<BisectResult, 'outcome' | 'cause' | 'headline' | 'isMinimal' | 'isConfirmed' | 'fusion'> {
  readonly reasons: readonly string[];
  /** Nodes that must stay FP32. */
  readonly units: readonly Suspect[];
  /** The change that makes it pass. */
  readonly change: Change;
}

/** The suspects of a level; nothing is read before it is needed. */
export interface Suspects {
  /** Nodes that the conversion computes in 16 bits, likeliest first; null where nothing is converted. */
  readonly units: (() => Promise<readonly Suspect[]>) | null;
  /** Of the model as the conversion writes it; null where the outputs stay as they are. */
  readonly tensors: (() => readonly InnerTensor[]) | null;
}

const nothing = { units: [], fusion: null, change: {}, isMinimal: true, isConfirmed: null, reasons: [] };

/** Nothing was searched: the candidate passes, or could not be judged. */
export const unsearched = (
  candidate: string,
  outcome: 'pass' | 'unresolved',
  reasons: readonly string[],
): Finding =>
  outcome === 'pass'
    ? {
        ...nothing,
        cause: 'none',
        outcome: 'pass',
        headline: `${candidate} passes: there is nothing to search.`,
      }
    : {
        ...nothing,
        cause: 'none',
        outcome: 'inconclusive',
        headline: `${candidate} could not be judged.`,
        reasons,
      };

/** Of an engine first what its compiler is free to do (TF32, fusions), as that costs least to undo; then the nodes that must stay FP32. */
export async function searchLevels(candidates: Candidates, suspects: Suspects): Promise<Finding> {
  const { engines, conversion } = candidates.searched;
  const plain = await candidates.trial({});
  if (plain?.outcome === 'pass')
    return {
      ...nothing,
      outcome: 'pass',
      cause: 'conversion',
      headline:
        conversion.precision === null
          ? 'The same model passes when its engine is built again.'
          : "trtforge's conversion passes with no further node in FP32.",
    };
  if (engines === null)
    return suspects.units === null ? unknown([]) : searchNodes(candidates, suspects.units);
  const tf32 = engines.hasTf32 ? await searchTf32(candidates) : null;
  if (tf32 !== null) return tf32;
  const fusion = suspects.tensors && (await searchFusions(candidates, suspects.tensors()));
  if (fusion !== null) return fusion;
  return suspects.units === null
    ? unknown([], candidates.isSpent ? BUDGET_ENDED : suspects.tensors === null ? ONLY_TF32 : undefined)
    : searchNodes(candidates, suspects.units);
}

const BUDGET_ENDED = 'The budget ended before the cause was found.';
const ONLY_TF32 = 'It does not pass without TF32 either.';

const unknown = (reasons: readonly string[], headline?: string): Finding => ({
  ...nothing,
  isMinimal: false,
  outcome: 'inconclusive',
  cause: 'unknown',
  headline:
    headline ?? 'It passes neither without TF32 nor with every tensor inside of a kernel as an output.',
  reasons,
});

async function searchTf32(candidates: Candidates): Promise<Finding | null> {
  const change = { tf32: false } as const;
  if ((await candidates.outcome(change)) !== 'pass') return null;
  return {
    ...nothing,
    outcome: 'pass',
    cause: 'tf32',
    headline: 'It passes without TF32: build it with --builder-config flags=no-tf32.',
    change,
  };
}

/** The fewest tensors inside of kernels that make it pass as outputs; null where not even all do. */
async function searchFusions(
  candidates: Candidates,
  tensors: readonly InnerTensor[],
): Promise<Finding | null> {
  const groups = fusionGroups(tensors, await candidates.program({}));
  const all = tensorsOf(groups);
  if (all.length === 0 || (await candidates.outcome({ outputs: all })) !== 'pass') return null;
  const test = (outputs: readonly string[]) => candidates.outcome({ outputs });
  const byGroup = await smallestPassing(groups, (some) => test(tensorsOf(some)));
  const found = await smallestPassing(tensorsOf(byGroup.changes), test);
  const spanning = byGroup.changes.filter(({ tensors }) =>
    tensors.some((name) => found.changes.includes(name)),
  );
  const finding = fusionFinding(spanning, found.changes, found.isMinimal);
  return { ...finding, reasons: doubtsOf(found, candidates) };
}

function fusionFinding(
  groups: readonly FusionGroup[],
  outputs: readonly string[],
  isMinimal: boolean,
): Finding {
  const which = outputs.length === 1 ? `the tensor "${outputs[0]}"` : plural(outputs.length, 'tensor');
  const fusions = groups.length === 1 ? 'the fusion' : 'the fusions';
  return {
    ...nothing,
    outcome: 'pass',
    cause: 'fusion',
    isMinimal,
    fusion: {
      kernel: groups[0]?.kernel ?? null,
      nodes: [...new Set(groups.flatMap(({ nodes }) => nodes))],
      outputs: [...outputs],
    },
    change: { outputs },
    headline: `It passes with ${which} as an output too, which breaks ${fusions} of ${groups.map(described).join(' and of ')}.`,
  };
}

const tensorsOf = (groups: readonly FusionGroup[]): readonly string[] =>
  groups.flatMap(({ tensors }) => tensors);

/** So many nodes are named in a sentence. */
const MOST_NAMED = 4;

function described({ nodes }: FusionGroup): string {
  const named = nodes.slice(0, MOST_NAMED).map((name) => `"${name}"`);
  const rest = nodes.length - named.length;
  return rest > 0 ? `${named.join(', ')} and ${plural(rest, 'more node')}` : named.join(', ');
}

/**
 * Roles first, as the same node of every block fails as a rule; then the nodes of those roles. In an engine the nodes of one kernel go together at first: next to a
 * neighbour in 16 bits a product between casts is computed in 16 bits all the same (seen in tensorrt-rtx 1.7.1).
 */
async function searchNodes(
  candidates: Candidates,
  suspects: () => Promise<readonly Suspect[]>,
): Promise<Finding> {
  const units = await suspects();
  const all = await candidates.trial({ keep: namesOf(units) }, `all ${plural(units.length, 'node')} in FP32`);
  if (all?.outcome !== 'pass')
    return unknown(all?.reasons ?? [], all === null ? BUDGET_ENDED : withoutAnyNode[all.outcome]);
  const test = (group: readonly Suspect[]) => candidates.outcome({ keep: namesOf(group) });
  const groups = inGroups(units, kernelsOf(await candidates.program({})));
  const byRole = await smallestPassing(byRoles(groups), (some) => test(some.flat(2)));
  const byGroup = await smallestPassing(byRole.changes.flat(), (some) => test(some.flat()));
  const isSingle = byGroup.changes.every(({ length }) => length === 1);
  const found = isSingle
    ? { ...byGroup, changes: byGroup.changes.flat() }
    : await smallestPassing(byGroup.changes.flat(), test);
  const doubts = doubtsOf(found, candidates);
  const others = units.filter((unit) => !found.changes.includes(unit));
  const alone =
    others.length === 0
      ? null
      : await candidates.trial({ keep: namesOf(others) }, 'every other node in FP32');
  return {
    ...nothing,
    outcome: 'pass',
    cause: 'nodes',
    units: found.changes,
    change: { keep: namesOf(found.changes) },
    isMinimal: found.isMinimal,
    // Between FP32 neighbours light operators stay FP32 as well: then the failing nodes alone are no model of their own.
    isConfirmed:
      alone === null || alone.outcome === 'unresolved' || alone.same === all.id
        ? null
        : alone.outcome === 'fail',
    headline: headlineOf(found.changes, found.isMinimal),
    reasons: [...doubts, ...reasonsFor(found.changes)],
  };
}

/** Findings on them by a candidate with every node in FP32. */
const withoutAnyNode = {
  fail: 'The conversion fails as well with every node in FP32, so none of them is the cause.',
  unresolved: 'The conversion with every node in FP32 could not be judged.',
} as const;

/** Why fewer changes may pass as well. */
const doubtsOf = ({ isMinimal }: Smallest<unknown>, { isSpent }: Candidates): readonly string[] => {
  if (isMinimal) return [];
  return [
    isSpent
      ? 'The budget ended before the smallest set was found.'
      : 'Fewer may be enough: smaller sets could not be judged.',
  ];
};

/** Units of one kernel together, in the order of the first of each; a unit that no kernel has is a group of its own. */
function inGroups(
  units: readonly Suspect[],
  kernels: readonly ProgramKernel[],
): readonly (readonly Suspect[])[] {
  const kernelOf = new Map<string, number>();
  for (const [index, { nodes }] of kernels.entries())
    for (const name of nodes) if (!kernelOf.has(name)) kernelOf.set(name, index);
  return [...groupBy(units, ({ name }) => kernelOf.get(name) ?? name).values()];
}

/** Groups by the roles of their units, in the order of the first of each. */
const byRoles = (groups: readonly (readonly Suspect[])[]) => [
  ...groupBy(groups, (group) =>
    group
      .map(({ role }) => role)
      .sort()
      .join(),
  ).values(),
];

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

const namesOf = (units: readonly Suspect[]) => units.map(({ name }) => name);

function headlineOf(units: readonly Suspect[], isMinimal: boolean): string {
  const [only] = units;
  if (!isMinimal) return `It passes with ${plural(units.length, 'node')} in FP32.`;
  return units.length === 1
    ? `It passes with ${only?.op} "${only?.name}" in FP32.`
    : `It passes with ${plural(units.length, 'node')} in FP32, and with none of them left out.`;
}

const reasonsFor = (units: readonly Suspect[]): readonly string[] =>
  units
    .filter(({ overflows }) => overflows)
    .map(({ name, op, peak }) => `${op} "${name}" reads or makes ${peak?.toPrecision(4)}, which overflows.`);
