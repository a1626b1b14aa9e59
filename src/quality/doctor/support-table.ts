import { z } from 'zod';
import { gpuArchitectures } from '../../engines/identity/gpu-architecture.js';
import { type Served, serves } from './support.js';

/** One compute capability and which TensorRT serves it: `yes`, `no`, `?`, or the versions that do (`from 10.8`). */
export const supportRowSchema = z.object({
  computeCapability: z.number(),
  architecture: z.string(),
  examples: z.string(),
  /** Whether a GPU of it is in this machine. */
  here: z.boolean(),
  tensorrt8: z.string(),
  tensorrt10: z.string(),
  tensorrt11: z.string(),
  tensorrtRtx: z.string(),
});
export type SupportRow = z.infer<typeof supportRowSchema>;

/** The releases of 10 between which support changed. */
const RELEASES_OF_10 = ['10.0', '10.4', '10.5', '10.7', '10.8', '10.16'];
const OLDEST_SHOWN = 61;

/** Where GPUs stand with TensorRT, from Pascal to Blackwell; with those of this machine marked, and added when older. */
export function supportTable(here: readonly number[]): readonly SupportRow[] {
  return gpuArchitectures
    .filter(({ computeCapability }) => computeCapability >= OLDEST_SHOWN || here.includes(computeCapability))
    .map(({ computeCapability, architecture, examples }) => ({
      computeCapability,
      architecture,
      examples,
      here: here.includes(computeCapability),
      tensorrt8: word(serves({ product: 'tensorrt', version: '8.6.1' }, computeCapability)),
      tensorrt10: rangeIn10(computeCapability),
      tensorrt11: word(serves({ product: 'tensorrt', version: '11.0' }, computeCapability)),
      tensorrtRtx: word(serves({ product: 'tensorrt-rtx', version: '1.7.1' }, computeCapability)),
    }));
}

const word = (served: Served): string => (served === 'unknown' ? '?' : served);

function rangeIn10(computeCapability: number): string {
  const answers = RELEASES_OF_10.map((version) =>
    serves({ product: 'tensorrt', version }, computeCapability),
  );
  const first = answers.indexOf('yes');
  const last = answers.lastIndexOf('yes');
  if (first === -1) return answers.includes('unknown') ? '?' : 'no';
  if (first > 0) return `from ${RELEASES_OF_10[first]}`;
  return last === answers.length - 1 ? 'yes' : `to ${RELEASES_OF_10[last]}`;
}
