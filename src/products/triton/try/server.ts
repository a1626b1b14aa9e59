import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { visibleGpus } from '../../../addon/gpus.js';
import { sha256 } from '../../../base/files/digest.js';
import { cacheFolder, makeFolder, splitPaths } from '../../../base/files/folders.js';
import { besidePath, moveInto } from '../../../base/files/publish.js';
import { sleep, throwIfCancelled } from '../../../base/process/cancel.js';
import { collectText, runCommand, startGroup } from '../../../base/process/command.js';
import { TrtforgeError } from '../../../errors.js';
import type { Work } from '../../../events.js';
import { TritonClient } from './client.js';
import type { TritonTry } from './result.js';

/** A server that is asked. */
export interface TritonServer {
  readonly url: string;
  /** `tensorrt`: its own back end, on a GPU. `stub`: ours, which loads no plan and answers with sums. `server`: one that was not started here. */
  readonly answeredBy: TritonTry['server']['answeredBy'];
  /** The server's message on a model that it did not take; null for none. */
  saidOf(model: string): string | null;
}

/** Where Triton's server is, and what will run plans for it. */
export interface FoundTriton {
  readonly program: string;
  readonly answeredBy: 'tensorrt' | 'stub';
  readonly backends: string;
}

const DOING = 'trying a repository';

/** Starting and warming up real engines takes minutes where they are large. */
const READY_MS = 600_000;
const POLL_MS = 100;
/** Last lines that are enough for the error of a failed start. */
const LAST_LINES = 12;

/** `tritonserver` of the PATH, else the one inside of the Python package nvidia-pytriton. Throws TF_TRITON_UNAVAILABLE, TF_CANCELLED. */
export async function findTriton(work: Work): Promise<FoundTriton> {
  const onPath = splitPaths(work.environment.PATH ?? '')
    .map((folder) => join(folder, 'tritonserver'))
    .find((path) => existsSync(path));
  const program = onPath ?? (await pytritonServer(work));
  throwIfCancelled(work.signal, DOING);
  if (program === undefined)
    throw new TrtforgeError(
      'TF_TRITON_UNAVAILABLE',
      "Triton's server is not installed: there is no tritonserver in the PATH, and python3 has no module pytriton.",
    );
  const own = join(dirname(program), '..', 'backends');
  const hasBackEnd = existsSync(join(own, 'tensorrt', 'libtriton_tensorrt.so'));
  if (hasBackEnd && visibleGpus().gpus.length > 0) return { program, answeredBy: 'tensorrt', backends: own };
  return { program, answeredBy: 'stub', backends: await stubBackends(work) };
}

async function pytritonServer(work: Work): Promise<string | undefined> {
  const ask =
    'import importlib.util as u; s = u.find_spec("pytriton"); print(s.submodule_search_locations[0] if s else "")';
  const { outcome, stdout } = await runCommand('python3', ['-c', ask], { timeoutMs: 60_000, ...work });
  const program = join(stdout.trim(), 'tritonserver', 'bin', 'tritonserver');
  return outcome === 'ended' && stdout.trim() !== '' && existsSync(program) ? program : undefined;
}

const stubSource = fileURLToPath(new URL('../../../../native/triton/stub.cpp', import.meta.url));

/** The folder with our back end, compiled once for its source. Throws TF_TRITON_UNAVAILABLE without a compiler. */
async function stubBackends({ environment, signal }: Work): Promise<string> {
  const compiler = environment.CXX ?? 'g++';
  const digest = sha256(`${compiler}\n${readFileSync(stubSource, 'utf8')}`).slice(0, 16);
  const folder = join(cacheFolder(environment), 'triton-stub', digest);
  const library = join(folder, 'tensorrt', 'libtriton_tensorrt.so');
  if (existsSync(library)) return folder;
  makeFolder(dirname(library));
  const pending = besidePath(library);
  const { outcome, exitCode, stderr } = await runCommand(
    compiler,
    ['-std=c++17', '-O2', '-fPIC', '-fvisibility=hidden', '-shared', stubSource, '-o', pending],
    { timeoutMs: 300_000, environment, signal },
  );
  throwIfCancelled(signal, DOING);
  if (outcome !== 'ended' || exitCode !== 0)
    throw new TrtforgeError(
      'TF_TRITON_UNAVAILABLE',
      `The stub that answers in place of a GPU was not compiled by ${compiler}: ${outcome === 'absent' ? 'there is no such program' : stderr.trim().split('\n').at(-1)}.`,
      { remedy: 'Install g++, or run the command where Triton has its TensorRT back end and a GPU.' },
    );
  moveInto(pending, library);
  return folder;
}

/** Starts the server over a repository and waits until it answers; models that do not load are its own to tell. Throws TF_TRITON_UNAVAILABLE, TF_CANCELLED. */
export async function startTriton(
  { program, answeredBy, backends }: FoundTriton,
  repository: string,
  { environment, signal }: Work,
): Promise<TritonServer & AsyncDisposable> {
  const port = await freePort();
  const { child, stop } = startGroup(
    program,
    [
      `--model-repository=${repository}`,
      `--backend-directory=${backends}`,
      '--disable-auto-complete-config',
      '--exit-on-error=false',
      '--http-address=127.0.0.1',
      `--http-port=${port}`,
      '--allow-grpc=false',
      '--allow-metrics=false',
      '--allow-gpu-metrics=false',
    ],
    { environment },
  );
  const texts = [collectText(child.stdout!), collectText(child.stderr!)];
  const log = () => texts.flatMap((text) => text().split('\n')).filter((line) => line !== '');
  let ended: string | undefined;
  const closed = once(child, 'close').then(
    ([code, by]) => {
      ended = by ?? `exit code ${code}`;
    },
    (error: Error) => {
      ended = error.message;
    },
  );
  const url = `http://127.0.0.1:${port}`;
  const server: TritonServer & AsyncDisposable = {
    url,
    answeredBy,
    saidOf: (model) => errorOn(model, log()),
    [Symbol.asyncDispose]: async () => {
      // It holds nothing that it would have to write.
      stop(500);
      await closed;
    },
  };
  try {
    await untilLive({ url, log, ended: () => ended }, signal);
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

/** The last error of a log that names a model; null for none. */
function errorOn(model: string, log: readonly string[]): string | null {
  const errors = log.filter((line) => line.startsWith('E'));
  const naming = (name: RegExp) => errors.findLast((line) => name.test(line));
  const name = model.replace(/[^\w]/g, '\\$&');
  // Of an ensemble it writes the name as it is: "in ensemble e_dim, …".
  const said = naming(new RegExp(`'${name}'`)) ?? naming(new RegExp(`(?<![\\w.-])${name}(?![\\w-])`));
  return said?.replace(/^E.*?\] /, '') ?? null;
}

interface StartedServer {
  readonly url: string;
  /** The lines that it wrote so far. */
  log(): readonly string[];
  /** How its process ended; undefined while it runs. */
  ended(): string | undefined;
}

/** Polls a server until it answers. Throws TF_TRITON_UNAVAILABLE after its end or READY_MS, TF_CANCELLED. */
async function untilLive({ url, log, ended }: StartedServer, signal: Work['signal']): Promise<void> {
  const until = Date.now() + READY_MS;
  const client = new TritonClient(url, signal);
  while (!(await client.isLive())) {
    throwIfCancelled(signal, DOING);
    const late = Date.now() > until ? `it did not answer within ${READY_MS / 60_000} minutes` : undefined;
    const why = ended() ?? late;
    if (why !== undefined)
      throw new TrtforgeError('TF_TRITON_UNAVAILABLE', `Triton's server did not start: ${why}.`, {
        remedy: `Its last lines: ${log().slice(-LAST_LINES).join(' | ')}`,
      });
    await sleep(POLL_MS, signal, DOING);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
