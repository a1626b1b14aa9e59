import { existsSync } from 'node:fs';
import { type CommandContext, defineCommand } from '../cli/command.js';
import { choice, flag, text } from '../cli/option.js';
import type { PlanFacts } from '../engine/plan-facts.js';
import { isPlanFile } from '../engine/plan-header.js';
import { TrtforgeError } from '../errors.js';
import { deepstreamSummary } from '../onnx/deepstream-summary.js';
import { modelFacts } from '../onnx/inspect.js';
import { openModel } from '../onnx/model.js';
import type { ModelFacts } from '../onnx/model-facts.js';
import { renderModel, renderPlan } from './inspect-text.js';

type InspectResult = (ModelFacts | PlanFacts) & { readonly format: 'text' | 'deepstream' };

export const command = defineCommand({
  name: 'inspect',
  summary: 'what is in an ONNX model or a TensorRT plan, without loading it',
  examples: [
    'trtforge inspect model.onnx',
    'trtforge inspect model.onnx --json | jq .inputs',
    'trtforge inspect model.onnx --check-weights',
    'trtforge inspect yolo.engine --strip-header yolo.plan',
  ],
  arguments: [{ name: 'FILE', describe: 'an .onnx model, or an .engine, .plan or .trt file' }],
  options: {
    format: choice({
      flags: '--format <format>',
      describe: 'text for people, or the summary that DeepStream scripts read with grep',
      choices: ['text', 'deepstream'],
      default: 'text',
    }),
    checkWeights: flag({
      flags: '--check-weights',
      describe: 'read every weight and report NaN, infinities and values outside FP16',
    }),
    stripHeader: text({
      flags: '--strip-header <out>',
      describe: 'write the plan to OUT without the header an exporter put in front of it',
    }),
  },
  run: async ([file = ''], options, context): Promise<InspectResult> => {
    const { format } = options;
    if (isPlanFile(file)) {
      if (format === 'deepstream' || options.checkWeights) {
        throw wrongKind(`${file} is a plan; --format deepstream and --check-weights are for ONNX models.`);
      }
      return { ...(await inspectPlan(file, options.stripHeader, context)), format };
    }
    if (options.stripHeader !== undefined) {
      throw wrongKind(`${file} is not a plan; --strip-header is for plans.`);
    }
    return { ...(await inspectOnnx(file, options.checkWeights, context)), format };
  },
  render: (result, output) => {
    if (result.kind === 'plan') renderPlan(result, output);
    else if (result.format === 'deepstream') for (const line of deepstreamSummary(result)) output.line(line);
    else renderModel(result, output);
  },
});

async function inspectOnnx(
  file: string,
  checkWeights: boolean,
  context: CommandContext,
): Promise<ModelFacts> {
  const model = openModel(file);
  try {
    const facts = modelFacts(model);
    if (!checkWeights) return facts;
    const { lintWeights } = await import('../onnx/lint-weights.js');
    return { ...facts, findings: [...facts.findings, ...(await lintWeights(model, context))] };
  } finally {
    model.close();
  }
}

/** What only plans need is loaded only for them, so that inspecting a model stays quick. */
async function inspectPlan(
  file: string,
  output: string | undefined,
  { environment }: CommandContext,
): Promise<PlanFacts> {
  const { inspectPlan: planFacts } = await import('../engine/plan-inspect.js');
  const { passportPath, readPassport } = await import('../engine/passport.js');
  const { findToolchains } = await import('../toolchain/find.js');
  return planFacts(file, {
    stripTo: output,
    passport: {
      path: passportPath(file),
      read: () => (existsSync(passportPath(file)) ? readPassport(file) : null),
    },
    toolchains: await findToolchains(environment),
  });
}

const wrongKind = (message: string) => new TrtforgeError('TF_USAGE', message);
