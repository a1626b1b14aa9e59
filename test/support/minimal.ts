import type { ExportedFile, Exporter } from '../../src/engines/exports/exporter.js';
import type { Passport } from '../../src/engines/identity/passport.js';

/** Triton's names of data types: model_config.proto, https://github.com/triton-inference-server/common. */
const dataTypes: Readonly<Record<string, string>> = {
  bool: 'TYPE_BOOL',
  uint8: 'TYPE_UINT8',
  int8: 'TYPE_INT8',
  int32: 'TYPE_INT32',
  int64: 'TYPE_INT64',
  float16: 'TYPE_FP16',
  bfloat16: 'TYPE_BF16',
  float32: 'TYPE_FP32',
};

/** The least that Triton reads: `NAME/1/model.plan` and `NAME/config.pbtxt` for each engine. */
export const minimal: Exporter = {
  id: 'minimal',
  *files(engines): Iterable<ExportedFile> {
    for (const { planPath, passport } of engines) {
      const { name } = passport.model;
      yield { path: `${name}/1/model.plan`, copyOf: planPath };
      // Last: Triton does not load a model without a configuration.
      yield { path: `${name}/config.pbtxt`, text: configuration(passport) };
    }
  },
};

const configuration = ({ model, plan }: Passport): string => `name: "${model.name}"
platform: "tensorrt_plan"
max_batch_size: 0
input [ ${plan.inputs.map(tensor).join(', ')} ]
output [ ${plan.outputs.map(tensor).join(', ')} ]
`;

/** The batch is an axis like any other, as the engine has it; -1 where a profile decides. */
const tensor = ({ name, dtype, shape }: Passport['plan']['inputs'][number]): string =>
  `{ name: "${name}" data_type: ${dataTypes[dtype] ?? 'TYPE_INVALID'} dims: [ ${shape?.map((size) => size ?? -1).join(', ')} ] }`;
