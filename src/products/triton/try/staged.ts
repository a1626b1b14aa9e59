import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TrtforgeError } from '../../../errors.js';
import { type ModelConfig, printModelConfig, readModelConfig } from '../model-config.js';

/** A model of a repository, by its configuration. */
export interface RepositoryModel {
  readonly name: string;
  readonly folder: string;
  readonly config: ModelConfig;
}

/** Throws TF_USAGE for a folder without models, TF_SERVING_CONFIG. */
export function modelsOf(repository: string): readonly RepositoryModel[] {
  const folders = existsSync(repository) ? readdirSync(repository, { withFileTypes: true }) : [];
  const models = folders
    .filter((each) => existsSync(join(repository, each.name, 'config.pbtxt')))
    .map(({ name }) => {
      const folder = join(repository, name);
      return { name, folder, config: readModelConfig(join(folder, 'config.pbtxt')) };
    });
  if (models.length > 0) return models.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  throw new TrtforgeError(
    'TF_USAGE',
    `${repository} is not a model repository: no folder in it has a config.pbtxt.`,
    {
      remedy: `Write one: trtforge triton export model.engine -o ${repository}`,
    },
  );
}

export const isPlan = ({ platform, backend }: ModelConfig): boolean =>
  platform === 'tensorrt_plan' || backend === 'tensorrt';

export const isEnsemble = ({ platform }: ModelConfig): boolean => platform === 'ensemble';

/** In the order of Triton's numbers. */
const TYPES =
  'TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16'.split(
    ' ',
  );

/** Writes what the stub serves: each configuration as it is, but for its instances, which are of the CPU; no plan is copied. Models of other back ends are left out. */
export function stageForStub(models: readonly RepositoryModel[], folder: string): void {
  for (const { name, folder: original, config } of models.filter(
    ({ config }) => isPlan(config) || isEnsemble(config),
  )) {
    const staged = join(folder, name);
    mkdirSync(staged);
    const instances = config.instance_group ?? [{}];
    const text = printModelConfig(
      isEnsemble(config)
        ? config
        : { ...config, instance_group: instances.map(({ count = 1 }) => ({ kind: 'KIND_CPU', count })) },
    );
    writeFileSync(join(staged, 'config.pbtxt'), text);
    for (const entry of readdirSync(original, { withFileTypes: true })) {
      const path = join(staged, entry.name);
      if (/^[1-9]\d*$/.test(entry.name)) {
        mkdirSync(path);
        writeFileSync(join(path, 'trtforge-stub.txt'), stubFile(config));
      } else if (entry.name !== 'config.pbtxt') symlinkSync(resolve(original, entry.name), path);
    }
  }
}

/** Its form is in native/triton/stub.cpp. */
function stubFile({ max_batch_size = 0, output = [], sequence_batching }: ModelConfig): string {
  const states = sequence_batching?.state ?? [];
  return [
    ...(max_batch_size > 0 ? [['batched']] : []),
    ...output.map(({ name, data_type = '', dims = [], reshape }) => [
      'output',
      name,
      TYPES.indexOf(data_type),
      ...(reshape === undefined ? dims : (reshape.shape ?? [])),
    ]),
    ...states.map(({ input_name, output_name }) => ['state', input_name, output_name]),
  ]
    .map((fields) => `${fields.join('\t')}\n`)
    .join('');
}
