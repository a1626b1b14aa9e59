import { removeIfAllowed } from '../../../base/files/files.js';
import { serveSession } from '../../../base/process/supervised-child.js';
import { TrtforgeError } from '../../../errors.js';
import type { EventListener } from '../../../events.js';
import type { EngineSession } from './engine-interface.js';
import { openEngineSession } from './engine-session.js';
import {
  type EngineChildCall,
  type EngineOpened,
  type EngineRan,
  TensorReceiver,
  TensorSender,
} from './tensor-exchange.js';

let session: EngineSession | undefined;
let sender = new TensorSender([]);
const receiver = new TensorReceiver({ reuse: true });

serveSession(async (message, emit) => {
  const request = message as EngineChildCall;
  return request.kind === 'open' ? open(request, emit) : run(request);
});

async function open(request: EngineChildCall & { kind: 'open' }, emit: EventListener): Promise<EngineOpened> {
  const { folders } = request;
  sender = new TensorSender(folders);
  // Whoever asked may be gone by then: nobody else would remove them.
  process.on('exit', () => {
    for (const folder of folders) removeIfAllowed(folder);
  });
  session = await openEngineSession(request.planPath, { ...request.options, emit });
  const { backend, inputs, outputs, facts } = session;
  return { backend, inputs, outputs, facts };
}

async function run(request: EngineChildCall & { kind: 'run' }): Promise<EngineRan> {
  if (session === undefined) throw new TrtforgeError('TF_INTERNAL', 'The session is not open.');
  sender.release(request.read);
  const inputs = receiver.receive(request.inputs);
  const options = request.profile === undefined ? {} : { profile: request.profile };
  const ms: number[] = [];
  let outputs = new Map() as Awaited<ReturnType<EngineSession['run']>>;
  for (let iteration = 0; iteration < request.iterations; iteration++) {
    const started = performance.now();
    outputs = await session.run(inputs, { ...options, outputs: 'pinned' });
    ms.push(performance.now() - started);
  }
  return {
    outputs: sender.send(outputs),
    ms,
    cudaGraphFallbacks: session.facts.cudaGraphFallbacks,
  };
}
