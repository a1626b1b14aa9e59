import { agree } from '../../behaviour/versions.js';

/** A container of Triton and the TensorRT in it, as one public page states it. */
export interface Container {
  readonly tag: string;
  /** As many parts as the source has. */
  readonly tensorrt: string;
  readonly source: string;
  /** When the source was written, or where it has no date the month of the container. */
  readonly date: string;
}

const server = 'https://github.com/triton-inference-server/server/issues';
const notes = 'https://docs.nvidia.com/deeplearning/sdk/inference-release-notes';
const twcc =
  'https://docs.twcloud.ai/en/docs/concepts-tutorials/twcc/ccs/concepts/images/triton-inference-server/';

/**
 * Containers `nvcr.io/nvidia/tritonserver:TAG` whose TensorRT a page states; add a row with its source. Tags with `trtllm` are not here: they have no TensorRT back end.
 * Most are missing, so that "unknown" is an answer; NVIDIA's whole table is https://docs.nvidia.com/deeplearning/frameworks/support-matrix/.
 */
const containers: readonly Container[] = [
  { tag: '20.10-py3', tensorrt: '7.2.1', source: `${notes}/rel_20-10.html`, date: '2020-10' },
  { tag: '20.12-py3', tensorrt: '7.2.2', source: `${notes}/rel_20-12.html`, date: '2020-12' },
  { tag: '21.08-py3', tensorrt: '8.0.1.6', source: twcc, date: '2021-09-16' },
  { tag: '21.11-py3', tensorrt: '8.0.3.4', source: twcc, date: '2022-05-18' },
  { tag: '22.02-py3', tensorrt: '8.2.3', source: twcc, date: '2022-05-18' },
  {
    tag: '22.04-py3',
    tensorrt: '8.2.4.2',
    source: 'https://github.com/pytorch/TensorRT/issues/1059',
    date: '2022-05-12',
  },
  { tag: '22.05-py3', tensorrt: '8.2.5.1', source: twcc, date: '2022-06-21' },
  { tag: '22.08-py3', tensorrt: '8.4.2.4', source: twcc, date: '2022-09-30' },
  { tag: '22.11-py3', tensorrt: '8.5.1', source: twcc, date: '2024-07-19' },
  { tag: '23.05-py3', tensorrt: '8.6.1.2', source: `${server}/5975`, date: '2023-06-21' },
  { tag: '24.02-py3', tensorrt: '8.6.3', source: `${server}/6959`, date: '2024-03-08' },
  { tag: '24.05-py3', tensorrt: '10.0.1.6', source: `${server}/7374`, date: '2024-06-25' },
];

/** The containers that a page gives this TensorRT, the newest last. */
export const containersOf = (version: string): readonly Container[] =>
  containers.filter(({ tensorrt }) => sameTensorrt(tensorrt, version));

/** Whether two versions agree in the parts that both have; the build number of a plan's header is modulo 256. */
export function sameTensorrt(a: string, b: string): boolean {
  const folded = (version: string) =>
    version
      .split('.')
      .map((part, at) => (at === 3 ? Number(part) % 256 : part))
      .join('.');
  return agree(folded(a), folded(b));
}
