import { assertNoFolder } from '../../base/files/user-files.js';
import { formatBytes, formatMs } from '../../base/text/quantity.js';
import { type RefitResult, refitResult, refitResultSchema } from '../../engines/builder/result.js';
import { refitEngine, refitOptions } from '../../quality/known-answer/build-or-load.js';
import { defineCommand, type TextOutput } from '../command.js';
import { renderNext, renderWarnings } from '../text.js';

const { engine: _engine, model: _model, ...options } = refitOptions;

export const command = defineCommand({
  arguments: [
    { name: 'ENGINE', describe: 'an engine that was built with --refit, which its GPU runs' },
    { name: 'MODEL', describe: 'an ONNX model with the same graph and other weights' },
  ],
  examples: [
    'trtforge engine refit model.engine retrained.onnx -o retrained.engine',
    'trtforge build model.onnx --refit -o model.engine',
  ],
  options,
  schema: async () => refitResultSchema,
  run: async ([engine = '', model = ''], options, context): Promise<RefitResult> => {
    assertNoFolder(options.output, "the engine's file", 'new.engine');
    return refitResult(await refitEngine({ engine, model, ...options }, context));
  },
  render,
});

function render(result: RefitResult, output: TextOutput): void {
  const { bold, green } = output.colors;
  const how = green(`refitted in ${formatMs(result.refitMs)}`);
  output.line(`${bold(result.name)}  ${how}  ${formatBytes(result.bytes)}`);
  output.line(`  engine    ${result.engine}`);
  output.line(`  passport  ${result.passport}`);
  output.line(`  identity  ${result.identity}`);
  output.line(`  from      ${result.refittedFrom}`);
  output.line(`  for       ${result.target}, ${result.library}, ${result.precision}`);
  if (result.unanswered !== null) output.line(`  answer    none: ${result.unanswered}`);
  renderNext([...(result.unanswered === null ? ['engine', 'check'] : ['bench']), result.engine], output);
  renderWarnings(result.warnings, output);
}
