import { parseTarget, platformFor, type TargetRequest, targetText } from '../../engines/identity/target.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import { inspectModel, inspectOptions } from '../../formats/onnx/inspect.js';
import { byVersion } from '../../formats/onnx/lint/findings.js';
import { loweringRemedy } from '../../formats/onnx/lint/operators.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { Finding } from '../../formats/onnx/model-facts.js';
import { type CommandContext, defineCommand } from '../command.js';
import { option } from '../option.js';
import { renderModel } from './inspect-text.js';

export const command = defineCommand({
  examples: [
    'trtforge inspect model.onnx',
    'trtforge inspect model.onnx --json | jq .inputs',
    "trtforge inspect model.onnx --nodes '^Conv$'",
    'trtforge inspect model.onnx --shapes x:8x3x224x224',
    'trtforge inspect model.onnx --check-weights',
    'trtforge inspect model.onnx --target tensorrt@10.3.0.26:sm_87',
  ],
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  options: {
    ...inspectOptions,
    target: option({
      flags: '--target <target>',
      describe:
        'also whether a TensorRT builds the model for a GPU: tensorrt@10.13.3.9:sm_90, tensorrt-rtx:sm_89',
      parse: parseTarget,
    }),
  },
  schema: async () => (await import('../../formats/onnx/model-facts.js')).modelFactsSchema,
  run: async ([file = ''], { shapes, nodes, weights, checkWeights, target }, context) => {
    if (isEngineFile(file))
      throw new TrtforgeError('TF_USAGE', `${file} is a TensorRT plan, not an ONNX model.`, {
        remedy: `Run: trtforge engine inspect ${file}`,
      });
    const request = { shapes, nodes, weights, checkWeights };
    const facts = await inspectModel(file, request, context);
    if (target === undefined) return facts;
    const general = facts.findings.filter(({ code }) => !byVersion.has(code));
    return { ...facts, findings: [...(await targetFindings(file, target, context)), ...general] };
  },
  render: renderModel,
});

/** Findings on what the chosen TensorRT cannot build of the model, or is not known to. */
async function targetFindings(
  file: string,
  requested: TargetRequest,
  { environment }: CommandContext,
): Promise<readonly Finding[]> {
  const [{ chooseTarget }, { buildFaults }, { buildFactsOf }] = await Promise.all([
    import('../../engines/builder/resolve-build.js'),
    import('../../engines/builder/buildable.js'),
    import('../../engines/identity/model-digest.js'),
  ]);
  const { request, toolchain } = await chooseTarget({ target: requested }, environment);
  const { computeCapabilities } = request;
  const model = viewModel(file, buildFactsOf);
  const platform = platformFor(request);
  return buildFaults({ toolchain, computeCapabilities: computeCapabilities ?? [], platform, model }).map(
    ({ severity, message, remedy = '', opset }) => ({
      ...{ code: 'target-unsupported', severity, where: targetText(request) },
      message: `${message} ${remedy}`.trim(),
      ...(opset === undefined ? {} : { remedy: viewModel(file, (open) => loweringRemedy(open, opset)) }),
    }),
  );
}
