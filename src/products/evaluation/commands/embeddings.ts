import { formatMs, plural } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { embeddingsOptions, evaluateEmbeddings } from '../embeddings/evaluate-embeddings.js';
import type { EmbeddingsResult } from '../embeddings/result.js';
import { embeddingOptions } from '../options.js';
import { preparations } from '../run/candidate.js';
import { imageOptions, imageRunOf, preprocessOption } from './image-options.js';

const preprocess = preprocessOption(preparations.embeddings);

export const command = defineCommand({
  arguments: [{ name: 'CANDIDATE', describe: 'an embedding network: an engine, or an ONNX model' }],
  examples: ['trtforge eval embeddings arcface.engine --against arcface.onnx --images faces/'],
  options: {
    ...imageOptions,
    reference: embeddingsOptions.reference,
    preprocess,
    ...embeddingOptions,
  },
  schema: async () => (await import('../embeddings/result.js')).embeddingsResultSchema,
  run: ([candidate = ''], options, context): Promise<EmbeddingsResult> =>
    evaluateEmbeddings({ ...options, candidate, ...imageRunOf(candidate, options, preprocess) }, context),
  render: (result, output) => {
    const { bold, dim, green, red, yellow } = output.colors;
    const { cosine_similarity: cosine, l2_distance: distance, timing, validation } = result;
    output.line(`${bold(result.candidate.file)} against ${bold(result.reference.file)}`);
    output.line(
      dim(`  ${plural(result.n_samples, 'image')}, ${result.dimensions} values each, ${result.preprocess}`),
    );
    output.line(
      `  cosine mean ${cosine.mean.toFixed(6)}, lowest ${cosine.min.toFixed(6)}; L2 mean ${distance.mean.toFixed(6)}, highest ${distance.max.toFixed(6)}`,
    );
    if (timing.reference_ms !== null && timing.candidate_ms !== null)
      output.line(
        `  run ${formatMs(timing.candidate_ms)}, reference ${formatMs(timing.reference_ms)} (medians)`,
      );
    for (const warning of result.warnings) output.line(yellow(warning));
    output.line(validation.passed ? green('pass') : `${red('FAIL')}  ${validation.failure_reason ?? ''}`);
  },
});
