import type { PlacedNode } from '../../../addon/onnx-runtime.js';
import { plural } from '../../../base/text/quantity.js';
import { TrtforgeError } from '../../../errors.js';
import type { Placement } from './ort-facts.js';
import { executionProvider, type OrtProvider } from './provider-options.js';

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
    {
      details: { providers, nodes: fallback },
      // Where it takes nothing, leave to run the others elsewhere is no help.
      ...(fallback.length === all && {
        remedy: 'Use another provider: this one takes nothing of the model.',
      }),
    },
  );
}

/** Warnings about nodes that were allowed to run elsewhere; empty where there are none. */
export function placementWarnings(placement: Placement | null): readonly string[] {
  if (placement === null || placement.fallback.length === 0) return [];
  const all = placement.providers.reduce((sum, { nodes }) => sum + nodes, 0);
  const operators = [...new Set(placement.fallback.map(({ operator }) => operator))].sort();
  return [
    `${placement.fallback.length} of ${plural(all, 'node')} ran elsewhere than requested: ${operators.join(', ')}.`,
  ];
}
