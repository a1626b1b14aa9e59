import { serve } from '../../base/process/supervised-child.js';
import { loadEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import { type Observed, observeLoaded } from './observe-loaded.js';
import type { CheckRequest } from './proof.js';

serve(async (request, work): Promise<Observed> => {
  const { planPath, answer, repeat, ...options } = request as CheckRequest;
  const engine = await loadEngine(planPath, { ...options, requirePassport: false, ...work });
  try {
    return await observeLoaded(engine, { answer, repeat, signal: work.signal });
  } finally {
    await engine.close();
  }
});
