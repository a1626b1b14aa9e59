import { parentPort, workerData } from 'node:worker_threads';
import { toErrorMessage } from '../../base/process/supervised-child.js';
import type { ImageAnswer, ImageThreadData } from './image-pool.js';
import { prepareImage } from './prepared-image.js';

const { input, preprocessing } = workerData as ImageThreadData;

parentPort!.on('message', ({ id, path }: { readonly id: number; readonly path: string }) => {
  const reply = (answer: ImageAnswer['answer'], moved: readonly ArrayBuffer[] = []) =>
    parentPort!.postMessage({ id, answer } satisfies ImageAnswer, [...moved]);
  prepareImage(path, input, preprocessing).then(
    (value) => {
      const tensors = [value.tensor, ...value.inputs.values()];
      reply({ kind: 'result', value }, [...new Set(tensors.map(({ bytes }) => bytes.buffer as ArrayBuffer))]);
    },
    (error: unknown) => reply(toErrorMessage(error)),
  );
});
