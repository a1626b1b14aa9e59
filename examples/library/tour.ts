/**
 * The library in four calls: inspect a model, convert it, build its engine, or do all of it with a report.
 *
 *   node build/examples/library/tour.js MODEL.onnx 'input:1x3x224x224/8x3x224x224/32x3x224x224' [FOLDER]
 *
 * The second argument is the optimization profile, NAME:MIN/OPT/MAX; results go into FOLDER (default: out/tour).
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildOrLoad, convertModel, type EventListener, forge, inspectModel, TrtforgeError } from 'trtforge';

/** Engines of tensorrt-rtx are built without a GPU. */
const target = 'tensorrt-rtx:sm_89';

async function tour(model: string, profile: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });

  // Reads no weight, whatever the size of the file.
  const facts = await inspectModel(model);
  const inputs = facts.inputs.map(({ name, dtype, shape }) => `${name} ${dtype} [${shape?.join(', ')}]`);
  console.log(`${facts.parameters} parameters, inputs: ${inputs.join('; ')}`);
  for (const { severity, message } of facts.findings) console.log(`${severity}: ${message}`);

  // A typed FP16 model, and the reason for every node that stayed FP32.
  const typed = join(folder, 'model.fp16.onnx');
  const conversion = await convertModel(model, typed, { precision: 'fp16' });
  const { nodes, bytes, kept } = conversion;
  console.log(`${typed}: ${nodes.converted} nodes in FP16, ${bytes.before} bytes became ${bytes.after}`);
  for (const { node, reason } of kept) console.log(`  ${node} stays FP32: ${reason}`);

  // The engine: built once, found by its identity afterwards.
  const request = {
    model,
    precision: 'fp16',
    target,
    profiles: [profile],
    store: join(folder, 'store'),
  } as const;
  for (const time of ['first', 'second']) {
    const { engine, readablePath, source } = await buildOrLoad(request);
    console.log(`${time} time ${source}: ${readablePath ?? engine}`);
  }

  // All steps with live progress, Ctrl-C and a report.
  const cancel = new AbortController();
  process.once('SIGINT', () => cancel.abort());
  const emit: EventListener = (event) => {
    if (event.type === 'phase-end') console.log(`  ${event.phase}: ${event.ms.toFixed(0)} ms`);
    if (event.type === 'phase-skipped') console.log(`  ${event.phase} skipped: ${event.reason}`);
  };
  const forged = await forge({ ...request, runRoot: join(folder, 'run') }, { emit, signal: cancel.signal });
  console.log(`${forged.verdict.outcome}: ${forged.verdict.headline}`);
  console.log(`report: ${forged.report}`);
}

const [model, profile, folder = join('out', 'tour')] = process.argv.slice(2);
if (model === undefined || profile === undefined) {
  console.error("usage: tour.js MODEL.onnx 'NAME:MIN/OPT/MAX' [FOLDER]");
  process.exitCode = 2;
} else {
  try {
    await tour(model, profile, folder);
  } catch (error) {
    // Every error of the library has a stable code, a message and a remedy.
    if (!(error instanceof TrtforgeError)) throw error;
    console.error(`${error.code}: ${error.message} ${error.remedy}`);
    process.exitCode = error.exitCode;
  }
}
