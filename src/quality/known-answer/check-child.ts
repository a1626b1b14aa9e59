import { serve } from '../../base/process/supervised-child.js';
import { loadEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import { checkLoaded, type Observed } from './check-loaded.js';
import type { CheckRequest } from './observe.js';

serve(async (request, work): Promise<Observed> => {
  const { planPath, answer, repeat, ...options } = request as CheckRequest;
  const engine = await loadEngine(planPath, { ...options, requirePassport: false, ...work });
  try {
    return await checkLoaded(engine, { answer, repeat, signal: work.signal });
  } finally {
    await engine.close();
  }
});
