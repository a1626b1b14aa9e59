import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ModelFolder } from '../check/repository.js';
import { backendOf, configText, innerDims, type ModelConfig, printModelConfig } from '../model-config.js';

/** In the order of Triton's numbers. */
const TYPES =
  'TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16'.split(
    ' ',
  );

/** Writes what the stub serves: each configuration as it is, but for its instances, which are of the CPU; no plan is copied. One that cannot be read is for the server to report. */
export function stageForStub(models: readonly ModelFolder[], folder: string): void {
  for (const { name, path: original, config, versions } of models) {
    const staged = join(folder, name);
    mkdirSync(staged);
    for (const entry of readdirSync(original)) {
      const path = join(staged, entry);
      if (versions.includes(entry)) {
        mkdirSync(path);
        writeFileSync(join(path, 'trtforge-stub.txt'), stubFile(config ?? {}));
      } else if (entry === 'config.pbtxt' && config !== null && !hasByteOrderMark(original))
        writeFileSync(path, printModelConfig(onCpu(config)));
      else symlinkSync(resolve(original, entry), path);
    }
  }
}

/** Triton cannot read it, and a configuration that is printed anew has none. */
const hasByteOrderMark = (model: string): boolean =>
  configText(join(model, 'config.pbtxt')).startsWith('\ufeff');

function onCpu(config: ModelConfig): ModelConfig {
  if (backendOf(config) === 'ensemble') return config;
  const instances = config.instance_group ?? [{}];
  return { ...config, instance_group: instances.map(({ count = 1 }) => ({ kind: 'KIND_CPU', count })) };
}

/** Its form is in native/triton/stub.cpp. */
function stubFile({ max_batch_size = 0, output = [], sequence_batching }: ModelConfig): string {
  const states = sequence_batching?.state ?? [];
  return [
    ...(max_batch_size > 0 ? [['batched']] : []),
    ...output.map((tensor) => [
      ...['output', tensor.name, TYPES.indexOf(tensor.data_type ?? '')],
      ...innerDims(tensor),
    ]),
    ...states.map(({ input_name, output_name }) => ['state', input_name, output_name]),
  ]
    .map((fields) => `${fields.join('\t')}\n`)
    .join('');
}
