import { z } from 'zod';
import { plural } from '../../../base/text/quantity.js';
import { TrtforgeError } from '../../../errors.js';
import type { PlacedNode } from '../../../tensorrt/addon/onnx-runtime.js';
import { executionProvider, type OrtProvider } from './ort-provider.js';

/**
 * Which provider took which nodes, as ONNX Runtime reports it: after its first optimizations, so a node may be several of the file's, and constant ones are gone.
 * A node that TensorRT takes counts by itself, not by its engine.
 */
export const placementSchema = z.object({
  providers: z.array(z.object({ provider: z.string(), nodes: z.int().positive() })),
  /** Nodes that the requested provider did not take. */
  fallback: z.array(z.object({ provider: z.string(), name: z.string(), operator: z.string() })),
});
export type Placement = z.infer<typeof placementSchema>;

/** Copies between providers that ONNX Runtime adds; no node of the model. */
const COPIES: ReadonlySet<string> = new Set(['MemcpyToHost', 'MemcpyFromHost']);

export function placementOf(nodes: readonly PlacedNode[], provider: OrtProvider): Placement {
  const own = nodes.filter(({ operator }) => !COPIES.has(operator));
  const counts = new Map<string, number>();
  for (const node of own) counts.set(node.provider, (counts.get(node.provider) ?? 0) + 1);
  return {
    providers: [...counts].map(([name, count]) => ({ provider: name, nodes: count })),
    fallback: own.filter((node) => node.provider !== executionProvider[provider]),
  };
}

const eventsSchema = z.array(
  z.object({
    cat: z.string().optional(),
    name: z.string().optional(),
    args: z
      .object({
        provider: z.string().optional(),
        op_name: z.string().optional(),
        node_index: z.string().optional(),
      })
      .optional(),
  }),
);

/**
 * The nodes in a record of a run, each once however often a loop ran it: what there is before 1.24. `profile` is what ONNX Runtime writes with profiling enabled, a
 * JSON array of trace events. Throws TF_ONNXRUNTIME_FAILED for anything else.
 */
export function nodesInProfile(profile: string): readonly PlacedNode[] {
  const nodes = new Map<string, PlacedNode>();
  for (const { cat, name = '', args = {} } of eventsIn(profile)) {
    const { provider, op_name: operator = '', node_index: index = '' } = args;
    if (cat === 'Node' && provider !== undefined)
      nodes.set(`${index} ${name}`, { provider, operator, name: name.replace(/_kernel_time$/, '') });
  }
  return [...nodes.values()];
}

function eventsIn(profile: string): z.infer<typeof eventsSchema> {
  try {
    return eventsSchema.parse(JSON.parse(profile));
  } catch (cause) {
    throw new TrtforgeError('TF_ONNXRUNTIME_FAILED', "ONNX Runtime's record of a run cannot be read.", {
      cause,
    });
  }
}

const NAMED = 5;

/** Throws TF_PROVIDER_FALLBACK for nodes that the provider did not take: all of them, or any where that is not allowed. */
export function rejectFallback(
  { providers, fallback }: Placement,
  provider: OrtProvider,
  isAllowed: boolean,
): void {
  if (fallback.length === 0) return;
  const all = providers.reduce((sum, { nodes }) => sum + nodes, 0);
  if (isAllowed && fallback.length < all) return;
  const named = fallback.slice(0, NAMED).map((node) => `${node.name || 'unnamed'} (${node.operator})`);
  const more = fallback.length > NAMED ? ` and ${fallback.length - NAMED} more` : '';
  throw new TrtforgeError(
    'TF_PROVIDER_FALLBACK',
    `${executionProvider[provider]} took ${all - fallback.length} of ${plural(all, 'node')}; the others are ${named.join(', ')}${more}.`,
    { details: { providers, nodes: fallback } },
  );
}

/** What a user should know of nodes that were allowed to run elsewhere; empty where there are none. */
export function placementWarnings(placement: Placement | null): readonly string[] {
  if (placement === null || placement.fallback.length === 0) return [];
  const all = placement.providers.reduce((sum, { nodes }) => sum + nodes, 0);
  const operators = [...new Set(placement.fallback.map(({ operator }) => operator))].sort();
  return [
    `${placement.fallback.length} of ${plural(all, 'node')} ran elsewhere than requested: ${operators.join(', ')}.`,
  ];
}
