import { assertNoFolder } from '../../base/files/user-files.js';
import type { OptionValues } from '../../base/options/option.js';
import { formatBytes, formatMs, plural } from '../../base/text/quantity.js';
import { type BuildOptions, buildOptions as requestOptions } from '../../engines/builder/options.js';
import {
  buildResult,
  buildResultSchema,
  originText,
  type ProfileOrigin,
  profileOriginSchema,
} from '../../engines/builder/result.js';
import { type EngineExtension, engineExtensions } from '../../engines/identity/engine-name.js';
import { ExitCode } from '../../errors.js';
import type { ExplainedIssue } from '../../quality/explain/explained-issue.js';
import { explaining } from '../../quality/explain/failure.js';
import { buildOrLoad } from '../../quality/known-answer/build-or-load.js';
import { missLines } from '../../report/sentences.js';
import { type CommandContext, defineCommand, type TextOutput } from '../command.js';
import {
  builderOption,
  buildOptions,
  buildRequest,
  storeOptions,
  withProfileFrom,
} from '../options/build.js';
import { buildPlan } from '../options/dry-run.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { renderIssues, renderNext, renderWarnings } from '../text.js';
import { precisionLines } from './facts-text.js';

/** With the known issues that the build's lines show although it passed. */
export type BuildReport = ReturnType<typeof buildResult> & {
  readonly exitCode: ExitCode;
  readonly profileFrom: readonly ProfileOrigin[];
  readonly issues: readonly ExplainedIssue[];
  readonly harmless: readonly { readonly id: string; readonly warnings: readonly string[] }[];
};

const commandOptions = {
  output: requestOptions.output,
  ...buildOptions,
  ...storeOptions,
  ...builderOption,
  knownAnswer: requestOptions.knownAnswer,
  ...timeoutOption,
};

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  examples: [
    'trtforge build resnet50.onnx --precision fp16 --batch 1/8/64',
    "trtforge build encoder.onnx --profile 'ids:1x16/8x128/32x512,mask:1x16/8x128/32x512'",
    'trtforge build encoder.onnx --profile-from samples/',
    'trtforge build model.onnx -o model.engine --batch 8 --workspace 4G --json',
    "trtforge build m.onnx --profile 'x:1x80x1/1x80x100/1x80x500' --profile 'x:8x80x1/8x80x100/8x80x500'",
    'trtforge build model.onnx --batch 8 --target tensorrt-rtx:sm_89 --builder-config optimization-level=5 --builder-config flags=no-tf32',
  ],
  options: commandOptions,
  schema: async () => {
    const [{ z }, { explainedIssueSchema }] = await Promise.all([
      import('zod'),
      import('../../quality/explain/explained-issue.js'),
    ]);
    return buildResultSchema.extend({
      /** The profiles that --profile-from made. */
      profileFrom: z.array(profileOriginSchema),
      issues: z.array(explainedIssueSchema),
      /** Of the warnings those that a known issue states to be harmless, by its id. */
      harmless: z.array(z.object({ id: z.string(), warnings: z.array(z.string()) })),
    });
  },
  run: limited(async ([model = ''], options, context): Promise<BuildReport> => {
    const { request: requested, profileFrom } = await requestOf(model, options, context);
    const { result, issues } = await explaining(
      (listener) => buildOrLoad(requested, { ...context, emit: listener, takesWrong: true }),
      {
        ...context,
        model,
        // Issues of what is found in the store were reported when it was built.
        built: ({ source, passport }) => (source === 'built' ? passport.identity.document.target : null),
      },
    );
    const built = buildResult(result);
    const exitCode = built.wrongAnswer === null ? ExitCode.pass : ExitCode.failed;
    return { ...built, exitCode, profileFrom, issues, harmless: await harmlessIn(built.warnings) };
  }),
  plan: async ([model = ''], options, context) => {
    const { request, profileFrom } = await requestOf(model, options, context);
    return buildPlan(request, profileFrom, context);
  },
  render,
});

/** Loaded only where there are warnings: an engine is found in milliseconds. */
async function harmlessIn(warnings: readonly string[]): Promise<BuildReport['harmless']> {
  if (warnings.length === 0) return [];
  const { knownIssues } = await import('../../quality/explain/known-issues/index.js');
  const found = warnings.map((text) => ({
    text,
    issue: knownIssues.find(({ pattern }) => pattern.test(text)),
  }));
  return [...new Set(found.flatMap(({ issue }) => (issue?.severity === 'note' ? [issue] : [])))].map(
    (note) => ({
      id: note.id,
      warnings: found.filter(({ issue }) => issue === note).map(({ text }) => text),
    }),
  );
}

function requestOf(
  model: string,
  options: OptionValues<typeof commandOptions>,
  context: CommandContext,
): ReturnType<typeof withProfileFrom<BuildOptions>> {
  const { output } = options;
  if (output !== undefined) assertNoFolder(output, "the engine's file", 'model.engine');
  const request = {
    ...buildRequest(model, options),
    extension: extensionOf(output),
    verbose: context.verbose ?? false,
  };
  return withProfileFrom(request, options, context);
}

/** The readable name ends as the file that the user named does. */
const extensionOf = (output: string | undefined): EngineExtension =>
  engineExtensions.find((ending) => output?.endsWith(`.${ending}`)) ?? 'engine';

function render(result: BuildReport, output: TextOutput): void {
  const { bold, dim, green, red } = output.colors;
  const { lookupMs, waitMs, remoteMs, buildMs } = result.timings;
  const how =
    result.source === 'built'
      ? `${result.refittedFrom === null ? 'built' : 'refitted'} in ${formatMs(buildMs)}`
      : `found in the ${result.source} store in ${formatMs(lookupMs + waitMs + remoteMs)}`;
  const layers = result.layers === null ? '' : ` of ${plural(result.layers, 'network layer')}`;
  output.line(`${bold(result.name)}  ${green(how)}  ${formatBytes(result.bytes)}${layers}`);
  output.line(`  engine    ${result.readablePath ?? result.engine}`);
  output.line(`  passport  ${result.passport}`);
  output.line(`  identity  ${result.identity}`);
  output.line(`  for       ${result.target}, ${result.library}, ${result.precision}`);
  if (result.refittedFrom !== null) output.line(`  refitted  from ${result.refittedFrom}`);
  if (result.wrongAnswer !== null) output.line(`  answer    ${red('FAIL')}: ${result.wrongAnswer}`);
  else if (result.unanswered !== null) output.line(`  answer    none: ${result.unanswered}`);
  for (const origin of result.profileFrom) output.line(`  profile   ${originText(origin)}`);
  const computes = result.precisions === null ? [] : precisionLines(result.precisions, output.colors);
  for (const [index, line] of computes.entries())
    output.line(`  ${index === 0 ? 'computes' : '        '}  ${line}`);
  if (output.verbose)
    for (const miss of result.why) for (const line of missLines(miss)) output.line(dim(`  ${line}`));
  const check = result.unanswered === null ? ['engine', 'check'] : ['bench'];
  renderNext([...check, result.readablePath ?? result.engine], output);
  renderIssues(
    result.issues.filter(({ severity }) => severity !== 'note'),
    output,
  );
  const harmless = result.harmless.flatMap(({ warnings }) => warnings);
  const kinds = result.harmless.map(({ id, warnings }) => `${id} ${warnings.length}`).join(', ');
  if (kinds !== '') output.line(dim(`${plural(harmless.length, 'harmless warning')}: ${kinds}`));
  renderWarnings(
    result.warnings.filter((warning) => !harmless.includes(warning)),
    output,
  );
}
