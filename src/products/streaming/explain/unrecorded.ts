import type { Explanation } from '../compare/result-schema.js';
import type { ChunkOutcome } from '../compare/stream-outcome.js';

/**
 * Outputs that were not held against anything because the reference lacks them: the main one in any chunk, others in some chunks though not in all. What
 * was never recorded but for that is the recorder's choice.
 */
export function unrecordedOutputs(
  chunks: readonly Pick<ChunkOutcome, 'chunk' | 'tensors' | 'refused'>[],
  main: string | null,
): readonly Explanation[] {
  const run = chunks.filter(({ refused }) => refused === null);
  const names = new Set(run.flatMap(({ tensors }) => tensors.map(({ tensor }) => tensor)));
  if (main !== null) names.add(main);
  return [...names].flatMap((name): Explanation[] => {
    const lacking = run.filter(({ tensors }) => !tensors.some(({ tensor }) => tensor === name));
    const [first, ...more] = lacking;
    if (first === undefined) return [];
    const sentence =
      lacking.length === run.length
        ? `The reference records ${name} in no chunk: nothing was held against it.`
        : `The reference does not record ${name} in chunk ${first.chunk}${more.length === 0 ? '' : ` and ${more.length} more`}: there nothing was held against it.`;
    return [
      {
        id: 'output-not-recorded',
        severity: 'warning',
        sentence,
        remedy: 'Record the reference again with every output, or see what wrote those lines.',
        evidence: { tensor: name, chunks: lacking.length },
      },
    ];
  });
}
