import { shellWord } from '../../../base/process/shell-word.js';
import { engineArgs } from '../../../engines/runtime/tensorrt/engine-options.js';
import { toleranceText } from '../../../quality/verify/tolerance.js';
import type { DriftPolicy } from '../compare/drift-policy.js';
import type { ParityRequest } from '../compare/request.js';

/** The command line that holds the same candidate against the same reference again, with everything spelled out that decides it. */
export function parityCommand(request: ParityRequest): string {
  const { candidate, reference, mode, contract } = request;
  const words = ['trtforge', 'verify', candidate, '--reference', reference, '--mode', mode];
  const add = (option: string, value: string | number | undefined) => {
    if (value !== undefined) words.push(option, String(value));
  };
  add('--contract', contract?.origin.path ?? undefined);
  add('--rule', request.rule);
  for (const tolerance of request.atol ?? []) add('--atol', toleranceText(tolerance));
  for (const tolerance of request.rtol ?? []) add('--rtol', toleranceText(tolerance));
  if (request.policy !== undefined) add('--drift', policyText(request.policy));
  add('--decoder', request.decoder);
  add('--swap', request.swap);
  add('--task-output', request.taskOutput);
  if (request.sensitivity === true) words.push('--sensitivity');
  add('--chunks', request.limit);
  add('--threads', request.threads);
  add('--provider', request.provider);
  add('--device', request.device);
  words.push(...engineArgs(request));
  if (request.batches !== undefined && request.batches.length > 0)
    add('--batches', request.batches.join(','));
  return words.map(shellWord).join(' ');
}

/** `p95=0.0005,max=0.001`, or `off`. */
function policyText(policy: DriftPolicy | null): string {
  if (policy === null) return 'off';
  const { latencyMs, ...errors } = policy;
  const limits = Object.entries({ ...errors, latency: latencyMs });
  const said = limits.flatMap(([name, limit]) => [`${name}=${limit ?? 'off'}`]);
  return said.join(',');
}
