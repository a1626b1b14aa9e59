import { agree } from './versions.js';

/** A container whose TensorRT a public page states. */
interface Container {
  readonly image: 'tritonserver' | 'tensorrt';
  readonly tag: string;
  readonly tensorrt: string;
  readonly source: string;
  readonly date: string;
}

const server = 'https://github.com/triton-inference-server/server/issues';
const notes = 'https://docs.nvidia.com/deeplearning/sdk/inference-release-notes';
const twcc =
  'https://docs.twcloud.ai/en/docs/concepts-tutorials/twcc/ccs/concepts/images/triton-inference-server/';

/**
 * Containers whose TensorRT a page states, as many parts as it has: `tritonserver`, or `tensorrt` of the same month, which Triton's follows in most months (server#3904;
 * not in 23.05). The date is that of the source, or where it has none the month of the container. Tags with `trtllm` are not here: they have no TensorRT back end.
 * Most are missing, so that "unknown" is an answer; NVIDIA's whole table is https://docs.nvidia.com/deeplearning/frameworks/support-matrix/.
 */
const containers = [
  ['20.10-py3', '7.2.1', '2020-10', `${notes}/rel_20-10.html`],
  ['20.12-py3', '7.2.2', '2020-12', `${notes}/rel_20-12.html`],
  ['21.08-py3', '8.0.1.6', '2021-09-16', twcc],
  ['21.11-py3', '8.0.3.4', '2022-05-18', twcc],
  ['22.02-py3', '8.2.3', '2022-05-18', twcc],
  ['22.04-py3', '8.2.4.2', '2022-05-12', 'https://github.com/pytorch/TensorRT/issues/1059'],
  ['22.05-py3', '8.2.5.1', '2022-06-21', twcc],
  ['22.08-py3', '8.4.2.4', '2022-09-30', twcc],
  ['22.11-py3', '8.5.1', '2024-07-19', twcc],
  ['23.05-py3', '8.6.1.2', '2023-06-21', `${server}/5975`],
  ['24.02-py3', '8.6.3', '2024-03-08', `${server}/6959`],
  ['24.05-py3', '10.0.1.6', '2024-06-25', `${server}/7374`],
  ['26.02-py3', '10.15.1', '2026-03-24', 'https://github.com/NVIDIA/Model-Optimizer/pull/1112', 'tensorrt'],
  ['26.06-py3', '11.0.0.114', '2026-09-15', 'https://github.com/apache/beam/issues/33078', 'tensorrt'],
].map(
  ([tag, tensorrt, date, source, image = 'tritonserver']) =>
    ({ image, tag, tensorrt, date, source }) as Container,
);

/** The containers that a page gives this TensorRT, the newest last. */
export const containersOf = (version: string): readonly Container[] =>
  containers.filter(({ tensorrt }) => sameTensorrt(tensorrt, version));

/** DeepStream's, for GPUs that are not Jetsons (https://docs.nvidia.com/metropolis/deepstream/release-notes/index.html). */
const deepstreams = [{ image: 'deepstream', tag: '9.0', tensorrt: '10.14.1.48' }];

/** The TensorRT of a container: `nvcr.io/nvidia/tritonserver:24.05-py3`, `tritonserver:24.05`, `deepstream:9.0-triton-multiarch`; undefined: unknown. */
export function tensorrtIn(container: string): string | undefined {
  const [, image, tag = ''] = /(?:^|\/)([\w-]+):([\w.-]+)$/.exec(container.trim()) ?? [];
  const usual = image === 'deepstream' ? tag.replace(/-.*/, '') : tag.replace(/^\d+\.\d+$/, '$&-py3');
  return [...containers, ...deepstreams].find((row) => row.image === image && row.tag === usual)?.tensorrt;
}

/** Whether two versions agree in the parts that both have; the build number of a plan's header is modulo 256. */
export function sameTensorrt(a: string, b: string): boolean {
  const folded = (version: string) =>
    version
      .split('.')
      .map((part, at) => (at === 3 ? Number(part) % 256 : part))
      .join('.');
  return agree(folded(a), folded(b));
}
