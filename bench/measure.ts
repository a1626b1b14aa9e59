import { spawnSync } from 'node:child_process';

/** What one command cost: the process and every child it waited for. What nothing here could measure is null. */
export interface Cost {
  /** Wall time. */
  readonly seconds: number;
  /** User and system time; far steadier than wall time on a machine that does other things too. */
  readonly cpuSeconds: number | null;
  /** Largest resident memory of any one process. */
  readonly peakBytes: number | null;
}

export interface CommandRuns {
  /** Medians over the runs after the warm-up. */
  readonly median: Cost;
  readonly runs: readonly Cost[];
}

export interface MeasureOptions {
  readonly runs: number;
  readonly warmups?: number;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Exit codes of a command that did its work; default 0. */
  readonly codes?: readonly number[];
  /** Runs before each measured command, with its place among them, outside the measured time. */
  readonly before?: (which: number) => void;
}

/**
 * Starts argv[1:], waits with wait4 and prints its time and what the kernel reports that it used; interpreter start is outside the time. A child that outlives it
 * by a moment is adopted (PR_SET_CHILD_SUBREAPER) and counted. Its peak is also read while it runs: wait4 leaves out most of a large file that was mapped.
 */
const RUNNER = `
import ctypes, glob, json, os, re, sys, threading, time
peak = 0
def tree(pid):
    yield pid
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        for child in open(path).read().split():
            yield from tree(child)
def watch():
    global peak
    while True:
        try:
            for pid in tree(os.getpid()):
                found = re.search(r"VmHWM:\\s+(\\d+)", open(f"/proc/{pid}/status").read())
                peak = max(peak, int(found[1]) if found else 0)
        except OSError:
            pass
        time.sleep(0.1)
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
quiet = os.open(os.devnull, os.O_WRONLY)
actions = [(os.POSIX_SPAWN_DUP2, quiet, 1)]
started = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
if sys.platform == "linux":
    threading.Thread(target=watch, daemon=True).start()
cpu = 0
while True:
    try:
        pid, code, usage = os.wait4(-1, 0)
    except ChildProcessError:
        break
    cpu += usage.ru_utime + usage.ru_stime
    peak = max(peak, usage.ru_maxrss)
    if pid == child:
        seconds, status = time.perf_counter() - started, code
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps({"seconds": seconds, "cpuSeconds": cpu, "peakBytes": peak * unit, "status": os.waitstatus_to_exitcode(status)}))
`;

/** A program that was to be measured, or that prepares a measurement, did not end well. */
export class CommandFailed extends Error {}

/** Runs a command several times, its output thrown away: wall time (process start included) and peak memory. */
export function measureCommand(argv: readonly string[], options: MeasureOptions): CommandRuns {
  return measureCommands([argv], options)[0]!;
}

/** The same for several commands in turns (a b a b …), so that a machine that slows down slows all of them. */
export function measureCommands(
  commands: readonly (readonly string[])[],
  options: MeasureOptions,
): CommandRuns[] {
  const costs: Cost[][] = commands.map(() => []);
  for (let run = -(options.warmups ?? 1); run < options.runs; run++) {
    commands.forEach((argv, which) => {
      options.before?.(which);
      const cost = measureOnce(argv, options);
      if (run >= 0) costs[which]?.push(cost);
    });
  }
  return costs.map(summary);
}

/** Our command, and in turns with it a peer's where there is one. */
export function measureBeside(
  argv: readonly string[],
  peer: { readonly name: string; readonly argv: readonly string[] } | undefined,
  options: MeasureOptions,
): {
  readonly ours: CommandRuns;
  readonly peer: { readonly name: string; readonly runs: CommandRuns } | undefined;
} {
  if (peer === undefined) return { ours: measureCommand(argv, options), peer };
  const [ours, theirs] = measureCommands([argv, peer.argv], options);
  return { ours: ours!, peer: { name: peer.name, runs: theirs! } };
}

function summary(runs: readonly Cost[]): CommandRuns {
  const known = (values: readonly (number | null)[]) => {
    const numbers = values.filter((value) => value !== null);
    return numbers.length === 0 ? null : median(numbers);
  };
  return {
    median: {
      seconds: median(runs.map(({ seconds }) => seconds)),
      cpuSeconds: known(runs.map(({ cpuSeconds }) => cpuSeconds)),
      peakBytes: known(runs.map(({ peakBytes }) => peakBytes)),
    },
    runs,
  };
}

function measureOnce(argv: readonly string[], options: MeasureOptions): Cost {
  const runner = spawnSync('python3', ['-c', RUNNER, ...argv], {
    cwd: options.cwd,
    env: options.env ?? process.env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (runner.error) return measureTime(argv, options);
  const line = runner.stdout.trim().split('\n').at(-1) ?? '';
  if (runner.status !== 0 || !line.startsWith('{')) throw failed(argv, runner.stderr);
  const { status, ...cost } = JSON.parse(line) as Cost & { status: number };
  if (!(options.codes ?? [0]).includes(status)) throw failed(argv, runner.stderr);
  return cost;
}

/** Without python3: wall time only. */
function measureTime(argv: readonly string[], { cwd, env, codes = [0] }: MeasureOptions): Cost {
  const started = performance.now();
  const child = spawnSync(argv[0]!, argv.slice(1), {
    cwd,
    env: env ?? process.env,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const seconds = (performance.now() - started) / 1000;
  if (!codes.includes(child.status ?? -1)) throw failed(argv, child.stderr);
  return { seconds, cpuSeconds: null, peakBytes: null };
}

const failed = (argv: readonly string[], stderr: string): CommandFailed =>
  new CommandFailed(`«${argv.join(' ')}» failed: ${stderr.trim().split('\n').slice(-3).join(' | ')}`);

/** The middle value, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
