import type { ProfileRequest } from '../../engines/profiles/profile.js';
import { planInputs, sampleOf } from '../../engines/run/inputs.js';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { Component } from './component.js';

/** What TensorRT prints when the shapes of a profile cannot pass through the graph: in an error, or only in a warning of a build that passes. */
const IMPOSSIBLE =
  /reshape changes volume|reshape would change volume|reshape wildcard -1 has no integer solution|Reshape dimension of -1 has no solution|reshaping failed for tensor|violate shape constraints|values are not self-consistent/i;

/** The node and the end of the profile that such a line names. */
const NODE = /\bI\w*Layer (?<node>[^\s:]+):|\(I\w*Layer (?<bracketed>[^\s:]+):/;
const END = /\bk(?<end>MIN|OPT|MAX)\b/;

type End = 'min' | 'opt' | 'max';
const ends: readonly End[] = ['min', 'opt', 'max'];

/** The first such line, or undefined. */
export const impossibleLine = (lines: readonly string[]): string | undefined =>
  lines.flatMap((line) => line.split('\n')).find((line) => IMPOSSIBLE.test(line));

/** One open dimension: every place with the same symbol, or one axis of one input. */
interface Dimension {
  readonly label: string;
  readonly places: readonly { readonly input: string; readonly axis: number }[];
}

/**
 * Finds the dimension that makes a profile impossible, by running the model on ONNX Runtime at its opt shapes with one dimension after the other at the end
 * that fails. `line` is the builder's. Always returns an error to throw; without ONNX Runtime it names the node only.
 */
export async function explainImpossibleProfile(
  component: Component,
  profile: ProfileRequest,
  line: string,
  context: OpenContext,
): Promise<TrtforgeError> {
  const node = NODE.exec(line)?.groups;
  const nodeName = node?.node ?? node?.bracketed;
  const place = nodeName === undefined ? '' : ` at the node "${nodeName}"`;
  const found = await findDimension(component, profile, line, context).catch(() => undefined);
  const what =
    found === undefined
      ? 'one of its dimensions'
      : found
          .map(({ dimension, end, size }) => `${dimension.label} = ${size} (${end})`)
          .join(' together with ');
  return new TrtforgeError(
    'TF_PROFILE_INVALID',
    `The profile of the ${component.name} is impossible for its graph: ${what} cannot pass${place}. The builder reports: ${line.trim()}`,
    {
      remedy:
        'Keep that dimension at sizes the graph can reshape, or export the model again with the axis dynamic; the exporter fixed a number there.',
      details: {
        component: component.name,
        node: nodeName ?? null,
        dimensions:
          found?.map(({ dimension, end, size }) => ({ places: dimension.places, end, size })) ?? null,
        line,
      },
    },
  );
}

interface Culprit {
  readonly dimension: Dimension;
  readonly end: End;
  readonly size: number;
}

async function findDimension(
  component: Component,
  profile: ProfileRequest,
  line: string,
  context: OpenContext,
): Promise<readonly Culprit[] | undefined> {
  const named = END.exec(line)?.groups?.end?.toLowerCase();
  const candidates = ends.filter((end) => named === undefined || end === named);
  const session = await openSession(component.onnx, {}, context);
  try {
    const runs = (sizes: ReadonlyMap<string, readonly number[]>): Promise<boolean> =>
      viewModel(component.onnx, async (model) => {
        try {
          await session.run(sampleOf(planInputs(model, session.inputs, { shapes: sizes }), 0, 0));
          return true;
        } catch (error) {
          if (error instanceof TrtforgeError && error.code === 'TF_CHILD_DIED') throw error;
          return false;
        }
      });
    const shapes = (end: End) => new Map([...profile].map(([name, range]) => [name, range[end]] as const));
    for (const end of candidates) {
      if (await runs(shapes(end))) continue;
      const all = dimensionsOf(component, profile).filter(
        (dimension) => sizeAt(dimension, profile, end) !== sizeAt(dimension, profile, 'opt'),
      );
      const optRuns = await runs(shapes('opt'));
      if (optRuns)
        for (const dimension of all)
          if (!(await runs(withDimension(shapes('opt'), profile, dimension, end))))
            return [{ dimension, end, size: sizeAt(dimension, profile, end) }];
      const blamed = all.length > 0 ? all : dimensionsOf(component, profile);
      return blamed.map((dimension) => ({ dimension, end, size: sizeAt(dimension, profile, end) }));
    }
    return undefined;
  } finally {
    await session.close();
  }
}

function dimensionsOf({ inputs }: Component, profile: ProfileRequest): readonly Dimension[] {
  const found = new Map<string, { label: string; places: { input: string; axis: number }[] }>();
  for (const { name, shape } of inputs) {
    for (const [axis, size] of (shape ?? []).entries()) {
      if (typeof size === 'number' || !profile.has(name)) continue;
      const key = size ?? `${name}/${axis}`;
      const known = found.get(key) ?? { label: '', places: [] };
      known.places.push({ input: name, axis });
      known.label = known.places
        .map((place) => `axis ${place.axis}${size === null ? '' : ` ("${size}")`} of input "${place.input}"`)
        .join(' and ');
      found.set(key, known);
    }
  }
  return [...found.values()];
}

const sizeAt = ({ places }: Dimension, profile: ProfileRequest, end: End): number =>
  profile.get(places[0]?.input ?? '')?.[end][places[0]?.axis ?? 0] ?? 0;

function withDimension(
  shapes: ReadonlyMap<string, readonly number[]>,
  profile: ProfileRequest,
  { places }: Dimension,
  end: End,
): ReadonlyMap<string, readonly number[]> {
  return new Map(
    [...shapes].map(([name, dims]) => [
      name,
      dims.map((size, axis) =>
        places.some((place) => place.input === name && place.axis === axis)
          ? (profile.get(name)?.[end][axis] ?? size)
          : size,
      ),
    ]),
  );
}
