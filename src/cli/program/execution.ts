import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cacheFolder } from '../../base/files/folders.js';
import { publishFile } from '../../base/files/publish.js';
import { longName } from '../../base/options/option.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { shellLine } from '../../base/text/shell-line.js';
import { catalogue, ExitCode, TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { explaining } from '../../quality/explain/failure.js';
import { broughtBy, type Command, type Product, type Verb } from '../command.js';
import { type Console, printable, reportError, reportResult, toJson } from '../output.js';
import { type PlanResult, planResult } from '../plan.js';
import {
  assertComplete,
  type Config,
  configText,
  type KnownKeys,
  loadConfig,
  resolveOptions,
} from '../resolve.js';
import { renderPlan } from '../text.js';
import { openLogFile } from './log-file.js';
import { protectingNamedFiles } from './named-files.js';
import { withNearFile } from './near-file.js';
import { createProgress } from './progress.js';
import { usageError } from './usage-error.js';

export interface Program {
  readonly name: string;
  readonly version: string;
  readonly summary: string;
  readonly products: readonly Product[];
}

/** Options that every command has; their names are not free for commands. */
interface GlobalOptions {
  readonly json?: boolean;
  readonly events?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly logFile?: string;
  readonly config?: string;
  readonly printConfig?: boolean;
  readonly force?: boolean;
}

/** A command line whose verb is chosen and whose options are read. */
interface Execution {
  readonly program: Program;
  readonly verbs: readonly Verb[];
  readonly verb: Verb;
  readonly command: Command;
  /** The command as typed: `cache ls`. */
  readonly path: string;
  readonly argv: readonly string[];
  /** The same with every flag under trtforge's own name. */
  readonly own: readonly string[];
  /** Arguments beyond those that the command takes. */
  readonly excess: readonly string[];
  /** Long names of the options, in the order in which they are read. */
  readonly order: readonly string[];
  readonly signal: AbortSignal;
}

/** One command: options resolved once, Ctrl-C as an abort signal, events to the terminal, the result as JSON or text. */
export async function execution(
  called: Execution,
  inputs: readonly string[],
  raw: Record<string, unknown>,
  console: Console,
): Promise<ExitCode> {
  const { program, command, path, signal } = called;
  const globals: GlobalOptions = raw;
  const words = [program.name, ...called.own];
  const verbose = globals.verbose === true;
  const view = { json: globals.json === true, command: path, verbose };
  const style = { events: globals.events === true, quiet: globals.quiet === true, verbose };
  const progress = createProgress(console, style);
  let log: ReturnType<typeof openLogFile> | undefined;
  const cancelling = () => progress.cancelling();
  signal.addEventListener('abort', cancelling, { once: true });
  try {
    const config = await loadConfig(globals.config, path, () => knownKeys(called.verbs));
    const options = resolveOptions(command.options, raw, config, console.environment);
    if (globals.printConfig === true) {
      await printConfig(config, { ...options.shown, ...command.file?.(inputs) }, view, console);
      return ExitCode.pass;
    }
    assertComplete(command, options.shown, { path, words, excess: called.excess });
    throwIfCancelled(signal, 'starting');
    const chosen = options.values.dryRun === true ? asPlanned(command) : command;
    const context = contextOf(called, globals, console);
    const listen: EventListener = (event) => {
      log?.(event);
      progress.listen(event);
    };
    const work = () => {
      if (globals.logFile !== undefined) log = openLogFile(globals.logFile);
      log?.({ type: 'start', version: program.version, commandLine: context.commandLine });
      // Whatever a command asks of TensorRT: when it fails, the error states which known issue its lines show.
      return explaining((emit) => chosen.run(inputs, options.values, { ...context, emit }), {
        emit: listen,
        model: inputs.find((input) => input.endsWith('.onnx')),
        knownIssues: () => broughtBy(program.products, 'knownIssues'),
      });
    };
    const named = { ...options.shown, config: config.path, 'log-file': globals.logFile };
    const { result } = await protectingNamedFiles(command, inputs, named, { force: context.force, work });
    if (!style.quiet) await noticeMissingOnnxRuntime(called.verb, console.environment, listen);
    progress.end();
    log?.({ type: 'end', exitCode: result.exitCode ?? ExitCode.pass, error: null });
    return reportResult(chosen, result, view, console);
  } catch (thrown) {
    progress.end();
    const error = withNearFile(usageError(thrown), words, path.split(' ').length + 1);
    const exitCode = reportError(error, view, console);
    const code = error instanceof TrtforgeError ? error.code : 'TF_INTERNAL';
    log?.({ type: 'end', exitCode, error: { code, message: String((error as Error).message) } });
    return exitCode;
  } finally {
    signal.removeEventListener('abort', cancelling);
  }
}

/** The context of a command, which lacks the listener of its events. */
function contextOf(
  { program: { name, products }, argv, order, signal }: Execution,
  globals: GlobalOptions,
  { environment, ask: put }: Console,
) {
  return {
    commandLine: shellLine([name, ...argv]),
    signal,
    environment,
    products,
    ask: put && ((question: string) => put(printable(question))),
    verbose: globals.verbose === true,
    force: globals.force === true,
    order,
  };
}

/** Prints the options that a command has here; with `--json` the path of the configuration file too. */
async function printConfig(
  { path: file }: Config,
  options: Readonly<Record<string, unknown>>,
  { json, command }: { readonly json: boolean; readonly command: string },
  console: Console,
): Promise<void> {
  if (json)
    return console.out(toJson(framedAs('config', command, { file: file === '' ? null : file, options })));
  const lines = (await configText(options)).split('\n');
  console.out(lines.map(printable).join('\n'));
}

/** The groups whose verbs run models, or lead to one that does. */
const GROUPS: readonly Verb['group'][] = ['Engines', 'Quality', 'Products'];

/**
 * Reports once for a user that ONNX Runtime is not installed, and what installs it: npm leaves an optional package out without a word where it does not
 * install. The mark is a file in the cache folder; where it cannot be written, the next command reports it too.
 */
async function noticeMissingOnnxRuntime(
  { group }: Pick<Verb, 'group'>,
  environment: NodeJS.ProcessEnv,
  emit: EventListener,
): Promise<void> {
  const mark = join(cacheFolder(environment), 'onnxruntime-notice');
  if (!GROUPS.includes(group) || hasPackage() || existsSync(mark)) return;
  const [{ findOrtLibraries }, { thisMachine }] = await Promise.all([
    import('../../engines/runtime/onnxruntime/find-library.js'),
    import('../../tensorrt/toolchain/find.js'),
  ]);
  if (findOrtLibraries(thisMachine(environment)).length > 0) return;
  const { remedy } = catalogue.TF_ONNXRUNTIME_MISSING;
  const message = `ONNX Runtime is not installed, which run, verify, forge and calibration need for models. ${remedy}`;
  emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  try {
    publishFile(mark, '');
  } catch {
    // As with progress that nobody can read.
  }
}

function hasPackage(): boolean {
  try {
    createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
    return true;
  } catch {
    return false;
  }
}

/** Output that is no command's work, in the frame of a result. */
export const framedAs = (
  what: string,
  command: string | null,
  fields: Readonly<Record<string, unknown>>,
) => ({
  schema: `trtforge.${what}/1`,
  ok: true,
  command,
  ...fields,
  exitCode: ExitCode.pass,
});

/** The command with its plan in the place of its work. */
const asPlanned = ({ plan, ...command }: Command): Command =>
  plan === undefined
    ? command
    : {
        ...command,
        run: async (...request) => planResult(await plan(...request)),
        render: (result, output) => renderPlan(result as PlanResult, output),
      };

async function knownKeys(verbs: readonly Verb[]): ReturnType<KnownKeys> {
  const loaded = await Promise.all(verbs.map(async ({ path, load }) => ({ path, ...(await load()) })));
  return new Map(
    loaded.map(({ path, options }) => [
      path,
      new Map(Object.values(options).map((spec) => [longName(spec), spec] as const)),
    ]),
  );
}
