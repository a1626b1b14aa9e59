import { spawnSync } from 'node:child_process';

/** A step of a script that failed, said in one sentence with what to do; scripts print it without a stack. */
export class SetupError extends Error {}

/** Runs named phases one after another, tells each with its time on stderr, and keeps the times. */
export class Phases {
  /**
   * `partOf` names the phase whose time an entry's time is already in.
   * @type {{ phase: string, seconds: number, detail: string, partOf?: string }[]}
   */
  results = [];

  /**
   * @template T
   * @param {string} phase
   * @param {() => T} work what it returns, when that is text, is the detail shown beside the time
   */
  run(phase, work) {
    process.stderr.write(`${phase} …\n`);
    const started = performance.now();
    const result = work();
    const seconds = (performance.now() - started) / 1000;
    const detail = typeof result === 'string' ? result : '';
    this.results.push({ phase, seconds, detail });
    process.stderr.write(`${phase}: ${seconds.toFixed(1)} s${detail && ` (${detail})`}\n`);
    return result;
  }

  /** The times as an aligned table, parts indented, with the sum of the phases. */
  table() {
    const total = this.results.reduce(
      (sum, { seconds, partOf }) => sum + (partOf === undefined ? seconds : 0),
      0,
    );
    const rows = [
      ...this.results.map((row) => (row.partOf === undefined ? row : { ...row, phase: `  ${row.phase}` })),
      { phase: 'all', seconds: total, detail: '' },
    ];
    const width = Math.max(...rows.map(({ phase }) => phase.length));
    return rows
      .map(({ phase, seconds, detail }) =>
        `${phase.padEnd(width)}  ${seconds.toFixed(1).padStart(6)} s  ${detail}`.trimEnd(),
      )
      .join('\n');
  }
}

/**
 * Runs a program in `cwd` and returns its stdout. Its stderr is shown as it comes when `show` is set, else kept and shown only when it fails.
 * @param {string} program
 * @param {readonly string[]} parameters
 * @param {{ cwd: string, show?: boolean, env?: NodeJS.ProcessEnv }} options
 */
export function runProgram(program, parameters, { cwd, show = false, env = process.env }) {
  const child = spawnSync(program, parameters, {
    cwd,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', show ? 'inherit' : 'pipe'],
    maxBuffer: 256 << 20,
  });
  if (child.error) throw new SetupError(`${program} could not be started: ${child.error.message}`);
  if (child.status !== 0) {
    const ended = child.signal === null ? `exit status ${child.status}` : `signal ${child.signal}`;
    const said = `${child.stdout}${child.stderr ?? ''}`.trim();
    throw new SetupError(`«${[program, ...parameters].join(' ')}» ended with ${ended}.\n${said}`);
  }
  return child.stdout;
}

/** What a script was asked; an option it does not know ends it with exit status 2 and one line. */
export function asked(parse) {
  try {
    return parse();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    return process.exit(2);
  }
}

/** Runs a script's body: a SetupError becomes its message and exit status 1; other errors keep their stack. */
export async function runScript(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`\n${error.message}\n`);
    process.exitCode = 1;
  }
}
